#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "rounded_tensor.h"

#include "libtorch/nn/average_attention.h"
#include "seqconv/ops/cumulative_average.h"
#include "support/golden.h"
#include "support/gradients.h"

/// Average attention in bfloat16. What its gradients may differ by depends on
/// shapes and values (sums cancel), so that the bound is computed beside them.
namespace seqconv::internal {
namespace {

using testing::Rounded;
using Lengths = std::optional<at::Tensor>;

/// {x, gate.weight, gate.bias} and, with a network, {fc1.weight, fc1.bias,
/// fc2.weight, fc2.bias} in float32, as its input is: how the average is stored
/// must not decide on which side of a ReLU a value falls.
struct Layer {
  std::vector<at::Tensor> inputs;
  Lengths lengths;

  bool has_network() const { return inputs.size() > 3; }
  at::Tensor mask() const {
    const int64_t T = inputs[0].size(1);
    return lengths ? at::arange(T).lt(lengths->unsqueeze(1)).unsqueeze(2)
                   : at::ones({1, 1, 1}, at::kBool);
  }
};

at::Tensor run(const Layer& layer, const std::vector<at::Tensor>& in) {
  const at::Tensor x = in[0] * layer.mask();
  at::Tensor g;
  if (layer.has_network()) {
    const auto wide = x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    const at::Tensor average = ops::cumulative_average(x.to(wide), layer.lengths);
    const at::Tensor hidden = at::relu(at::linear(average, in[3], in[4]));
    g = at::linear(hidden, in[5], in[6]).to(x.scalar_type());
  } else {
    g = ops::cumulative_average(x, layer.lengths);
  }
  return average_attention_gate(x, g, in[1], in[2]) * layer.mask();
}

/// Rows [B * T, C] of a tensor, and back.
at::Tensor rows_of(const at::Tensor& t) {
  return t.reshape({-1, t.size(-1)});
}

/// What the gate, y = s0 x + s1 g with s = sigmoid([x g] W^T + b), gives back
/// for grad_y; every result of an operation is stored.
struct GateBounds {
  Rounded y;
  Rounded through_keep, through_both;  ///< the parts of the gradient of x
  Rounded grad_g, grad_weight, grad_bias;

  static GateBounds of(
      const Rounded& x,
      const Rounded& g,
      const Rounded& weight,
      const Rounded& bias,
      const Rounded& grad_y) {
    const int64_t C = x.value.size(1);
    const Rounded both = concatenated(x, g);
    const Rounded s = sigmoid((matmul(both, transposed(weight)) + bias).stored()).stored();
    const Rounded keep = s.narrow(1, 0, C), take = s.narrow(1, C, C);
    const Rounded grad_s = concatenated((grad_y * x).stored(),
                                        (grad_y * g).stored());  // [M, 2C]
    const Rounded grad_z = (grad_s * sigmoid_slope(s)).stored();
    const Rounded grad_both = matmul(grad_z, weight).stored();
    const auto sum = [](const at::Tensor& t) { return t.sum(0); };
    return {
        ((keep * x).stored() + take * g).stored(),
        (grad_y * keep).stored(),
        grad_both.narrow(1, 0, C),
        ((grad_y * take).stored() + grad_both.narrow(1, C, C)).stored(),
        matmul(transposed(grad_z), both).stored(),
        grad_z.mapped(sum).stored()};
  }
};

/// A sum of three that are added one after the other, in whatever order.
Rounded sum_of_three(const Rounded& a, const Rounded& b, const Rounded& c) {
  const at::Tensor most =
      a.value.abs() + b.value.abs() + c.value.abs() + a.error + b.error + c.error;
  const Rounded sum = a + b + c;
  return {sum.value, sum.error + 2.1 * testing::kBFloat16Rounding * most};
}

/// Bounds on what run() and its gradients with respect to its inputs differ by.
std::vector<Rounded> bounds(const Layer& layer, const at::Tensor& grad_y) {
  const auto& in = layer.inputs;
  const auto shape = in[0].sizes();
  const at::Tensor mask = layer.mask().to(at::kDouble);  // [B, T, 1]
  const at::Tensor x = in[0].to(at::kDouble) * mask;
  const auto weight = [&](size_t i) { return Rounded(in[i]); };
  const at::Tensor average = rows_of(ops::cumulative_average(x, layer.lengths));
  Rounded g(average), hidden(average);
  at::Tensor active;
  if (layer.has_network()) {
    const at::Tensor z = at::linear(average, in[3].to(at::kDouble), in[4].to(at::kDouble));
    active = z.gt(0).to(at::kDouble);
    hidden = Rounded(z * active);
    g = matmul(hidden, transposed(weight(5))) + weight(6);
  }
  const GateBounds gate = GateBounds::of(
      Rounded(rows_of(x)),
      g.stored(),
      weight(1),
      weight(2),
      Rounded(rows_of(grad_y.to(at::kDouble) * mask)));
  std::vector<Rounded> result = {gate.y, gate.through_keep, gate.grad_weight, gate.grad_bias};
  Rounded grad_average = gate.grad_g;
  if (layer.has_network()) {
    const auto sum = [](const at::Tensor& t) { return t.sum(0); };
    const Rounded grad_hidden = matmul(gate.grad_g, weight(5)) * Rounded(active);
    result.push_back(matmul(transposed(grad_hidden), Rounded(average)));
    result.push_back(grad_hidden.mapped(sum));
    result.push_back(matmul(transposed(gate.grad_g), hidden));
    result.push_back(gate.grad_g.mapped(sum));
    grad_average = matmul(grad_hidden, weight(3));
  }
  // The average's transpose, by its definition: nothing is negative there.
  const Rounded back = grad_average.mapped([&](const at::Tensor& t) {
    const at::Tensor zero = at::zeros(shape, at::kDouble).requires_grad_();
    return rows_of(torch::autograd::grad(
        {ops::cumulative_average(zero, layer.lengths)}, {zero}, {t.reshape(shape) * mask})[0]);
  });
  const at::Tensor real = rows_of(mask.expand({shape[0], shape[1], 1}));
  result[0] = gate.y * Rounded(real);
  result[1] = sum_of_three(gate.through_keep, gate.through_both, back.stored());
  return result;
}

Layer random_layer(int64_t B, int64_t T, int64_t C, int64_t hidden) {
  const auto draw = [](at::IntArrayRef shape, double scale) {
    return (at::randn(shape) * scale).to(at::kBFloat16);
  };
  Layer layer;
  layer.inputs = {
      draw({B, T, C}, 1), draw({2 * C, 2 * C}, 1 / std::sqrt(2.0 * C)), draw({2 * C}, 0.3)};
  if (hidden > 0)
    for (const at::Tensor& t :
         {draw({hidden, C}, 1 / std::sqrt(1.0 * C)),
          draw({hidden}, 0.1),
          draw({C, hidden}, 1 / std::sqrt(1.0 * hidden)),
          draw({C}, 0.1)})
      layer.inputs.push_back(t.to(at::kFloat));
  if (B > 1)
    layer.lengths = at::randint(1, T + 1, {B}, at::kLong);
  return layer;
}

/// {y, gradients}.
std::vector<at::Tensor> all_of(const testing::Differentiated& result) {
  std::vector<at::Tensor> all = {result.y};
  all.insert(all.end(), result.grads.begin(), result.grads.end());
  return all;
}

/// The most of |got - want| / bound; checks that the bound is of `want`.
double worst(
    const std::vector<at::Tensor>& got,
    const std::vector<at::Tensor>& want,
    const std::vector<Rounded>& bound) {
  double most = 0;
  for (size_t i = 0; i < bound.size(); ++i) {
    SCOPED_TRACE(i);
    const at::Tensor value = bound[i].value.reshape(want[i].sizes());
    EXPECT_LE(testing::relative_error(value, want[i]), 1e-12);
    const at::Tensor off = (got[i].to(at::kDouble) - want[i]).abs();
    // Beside it: float32, in which sums are kept.
    const at::Tensor room = bound[i].error.reshape(off.sizes()) + 1e-5 * want[i].abs().max();
    const double part = (off / room).max().item<double>();
    EXPECT_LE(part, 1.0);
    most = std::max(most, part);
  }
  return most;
}

TEST(AverageAttentionBFloat16, GradientsLieWithinTheBoundOfTheirRounding) {
  struct Shape {
    int64_t B, T, C, hidden;
  };
  double most = 0;
  for (const Shape& s :
       {Shape{1, 1, 1, 0},
        Shape{1, 7, 4, 0},
        Shape{3, 40, 16, 0},
        Shape{2, 5, 64, 0},
        Shape{4, 3, 8, 12},
        Shape{2, 33, 16, 64},
        Shape{1, 120, 32, 16}})
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      SCOPED_TRACE(concat(s.B, " ", s.T, " ", s.C, " ", s.hidden, " ", seed));
      at::manual_seed(seed);
      const Layer layer = random_layer(s.B, s.T, s.C, s.hidden);
      const at::Tensor grad_y = at::randn({s.B, s.T, s.C}).to(at::kBFloat16);
      const auto function = [&](const std::vector<at::Tensor>& in) { return run(layer, in); };
      std::vector<at::Tensor> exact;
      for (const at::Tensor& t : layer.inputs)
        exact.push_back(t.to(at::kDouble));
      const auto want = testing::differentiate(function, exact, grad_y.to(at::kDouble));
      const auto got = testing::differentiate(function, layer.inputs, grad_y);
      most = std::max(most, worst(all_of(got), all_of(want), bounds(layer, grad_y)));
    }
  // A bound that is far away bounds nothing.
  EXPECT_GT(most, 0.2);
}

std::vector<testing::TensorCase> recorded_cases(const std::string& op) {
  std::vector<testing::TensorCase> cases = testing::load_golden_cases(op);
  EXPECT_FALSE(cases.empty()) << op;
  for (testing::TensorCase& golden : cases)
    testing::shift_to_right_padding(golden, {"x", "g", "y", "grad_output", "grad_x", "grad_g"});
  return cases;
}

/// The recorded tensors of these names, with `prefix` before them.
std::vector<at::Tensor> tensors_of(
    const testing::TensorCase& golden,
    const std::string& prefix,
    const std::vector<std::string>& names) {
  std::vector<at::Tensor> result;
  for (const std::string& name : names)
    result.push_back(golden.at(prefix + name));
  return result;
}

TEST(AverageAttentionGolden, ValuesAndGradientsInBFloat16) {
  for (const testing::TensorCase& golden : recorded_cases("average_attention")) {
    SCOPED_TRACE(golden.name);
    std::vector<std::string> names = {"x", "gate.weight", "gate.bias"};
    if (golden.has("ffn.0.weight"))
      for (const char* name : {"ffn.0.weight", "ffn.0.bias", "ffn.1.weight", "ffn.1.bias"})
        names.emplace_back(name);
    Layer layer;
    layer.inputs = tensors_of(golden, "", names);
    for (size_t i = 0; i < names.size(); ++i)
      layer.inputs[i] = layer.inputs[i].to(i < 3 ? at::kBFloat16 : at::kFloat);
    if (golden.has("lengths"))
      layer.lengths = golden.at("lengths");
    const at::Tensor grad_y = golden.at("grad_output").to(at::kBFloat16);
    const auto function = [&](const std::vector<at::Tensor>& in) { return run(layer, in); };
    const auto got = testing::differentiate(function, layer.inputs, grad_y);
    std::vector<at::Tensor> want = {golden.at("y")};
    for (const at::Tensor& grad : tensors_of(golden, "grad_", names))
      want.push_back(grad);
    worst(all_of(got), want, bounds(layer, grad_y));
  }
}

TEST(AverageAttentionGateGolden, ValuesAndGradientsInBFloat16) {
  const std::vector<std::string> names = {"x", "g", "gate.weight", "gate.bias"};
  for (const testing::TensorCase& golden : recorded_cases("average_attention_gate")) {
    SCOPED_TRACE(golden.name);
    std::vector<at::Tensor> inputs = tensors_of(golden, "", names);
    std::vector<Rounded> exact;
    for (at::Tensor& input : inputs) {
      input = input.to(at::kBFloat16);
      exact.emplace_back(input.dim() == 3 ? rows_of(input) : input);
    }
    const at::Tensor grad_y = golden.at("grad_output").to(at::kBFloat16);
    const auto got = testing::differentiate(
        [](const std::vector<at::Tensor>& in) {
          return average_attention_gate(in[0], in[1], in[2], in[3]);
        },
        inputs,
        grad_y);
    const GateBounds gate =
        GateBounds::of(exact[0], exact[1], exact[2], exact[3], Rounded(rows_of(grad_y)));
    std::vector<at::Tensor> want = {golden.at("y")};
    for (const at::Tensor& grad : tensors_of(golden, "grad_", names))
      want.push_back(grad);
    worst(
        all_of(got),
        want,
        {gate.y,
         (gate.through_keep + gate.through_both).stored(),
         gate.grad_g,
         gate.grad_weight,
         gate.grad_bias});
  }
}

}  // namespace
}  // namespace seqconv::internal
