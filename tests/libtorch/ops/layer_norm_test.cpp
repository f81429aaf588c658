#include "libtorch/ops/elementwise.h"
#include "libtorch/ops/fused_support.h"
#include "libtorch/ops/recorded_calls.h"
#include "support/gradients.h"

namespace seqconv::ops {
using namespace internal;
namespace {

using namespace testing;

at::Tensor plain_layer_norm(
    const at::Tensor& z, const at::Tensor& weight, const at::Tensor& bias, double epsilon = 1e-5) {
  const at::Tensor centred = z - z.mean(-1, /*keepdim=*/true);
  const at::Tensor variance = centred.square().mean(-1, /*keepdim=*/true);
  return centred / (variance + epsilon).sqrt() * weight + bias;
}

/// No row is nearly constant: its gradient would be a small difference of large
/// terms, of which float32 leaves nothing.
Inputs random_inputs(at::IntArrayRef shape, at::ScalarType type) {
  const int64_t C = shape.back();
  return {
      random_normal(shape, type),
      random_normal(shape, type) + 0.5 + at::arange(C).remainder(2) * 4,
      random_normal({C}, type) * 0.3 + 1,
      random_normal({C}, type)};
}

TEST(LayerNormOp, FusedFormMatchesPlainAlgebra) {
  const std::vector<std::vector<int64_t>> shapes = {
      {1, 2}, {5, 3}, {2, 7, 16}, {3, 130}, {2, 3, 513}, {70, 1025}};
  for (const auto type : {at::kFloat, at::kDouble})
    for (const double p : {0.0, 0.3})
      for (const auto& shape : shapes)
        expect_same(
            [&](const Inputs& in) {
              return dropout_add_layer_norm(in[0], in[1], in[2], in[3], p, 21);
            },
            [&](const Inputs& in) {
              return plain_layer_norm(in[1] + plain_dropout(in[0], p, 21), in[2], in[3]);
            },
            random_inputs(shape, type),
            type == at::kDouble ? 1e-12 : 1e-5);
}

TEST(LayerNormOp, PlainFormMatchesATen) {
  for (const int64_t C : {1, 2, 16, 77, 600}) {
    Inputs inputs = random_inputs({9, C}, at::kDouble);
    inputs.erase(inputs.begin());
    expect_same(
        [](const Inputs& in) { return ops::layer_norm(in[0], in[1], in[2], 1e-6); },
        [&](const Inputs& in) { return at::layer_norm(in[0], {C}, in[1], in[2], 1e-6); },
        inputs,
        1e-12);
  }
}

TEST(LayerNormOp, GradientsAreNumericalDerivatives) {
  for (const double p : {0.0, 0.4})
    expect_numerical_gradients(
        [&](const Inputs& in) { return dropout_add_layer_norm(in[0], in[1], in[2], in[3], p, 6); },
        random_inputs({2, 3, 5}, at::kDouble));
  Inputs plain = random_inputs({4, 5}, at::kDouble);
  plain.erase(plain.begin());
  expect_numerical_gradients(
      [](const Inputs& in) { return ops::layer_norm(in[0], in[1], in[2]); }, plain);
}

TEST(LayerNormOp, WithoutGradientsTheOutputIsTheSame) {
  const Inputs in = random_inputs({6, 33}, at::kFloat);
  const at::Tensor plain = dropout_add_layer_norm(in[0], in[1], in[2], in[3], 0.2, 7);
  const auto kept = with_gradients(
      [](const Inputs& i) { return dropout_add_layer_norm(i[0], i[1], i[2], i[3], 0.2, 7); }, in);
  EXPECT_TRUE(at::equal(plain, kept[0]));
  EXPECT_FALSE(plain.requires_grad());
}

TEST(LayerNormOp, KeepsAccuracyFarFromZero) {
  const at::Tensor x = random_normal({3, 512}, at::kDouble) + 1000;
  const at::Tensor one = at::ones({512}), zero = at::zeros({512});
  const at::Tensor single = x.to(at::kFloat);
  const at::Tensor want =
      plain_layer_norm(single.to(at::kDouble), one.to(at::kDouble), zero.to(at::kDouble));
  EXPECT_LE(error(ops::layer_norm(single, one, zero), want), 1e-4);
}

TEST(LayerNormOp, NoRowsGiveZeroGradients) {
  const auto out = with_gradients(
      [](const Inputs& in) { return dropout_add_layer_norm(in[0], in[1], in[2], in[3], 0.1, 7); },
      {at::ones({0, 4}), at::ones({0, 4}), at::ones({4}), at::ones({4})});
  EXPECT_EQ(out[0].sizes(), (at::IntArrayRef{0, 4}));
  EXPECT_TRUE(at::equal(out[3], at::zeros({4})));
  EXPECT_TRUE(at::equal(out[4], at::zeros({4})));
}

TEST(LayerNormOp, ResultsDoNotDependOnTheNumberOfThreads) {
  const Inputs inputs = random_inputs({864, 256}, at::kFloat);
  std::vector<at::Tensor> want;
  for (const int threads : {1, 2, 3, 4}) {
    const ThreadCount guard(threads);
    const auto got = with_gradients(
        [](const Inputs& in) { return dropout_add_layer_norm(in[0], in[1], in[2], in[3], 0.3, 5); },
        inputs);
    if (want.empty())
      want = got;
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_TRUE(at::equal(got[i], want[i])) << i << ", " << threads;
  }
}

TEST(LayerNormOp, SaysWhatIsWrong) {
  const at::Tensor x = at::ones({2, 4}), w = at::ones({4});
  expect_error(
      [&] { ops::layer_norm(x, at::ones({3}), w); },
      "[layer_norm] weight and bias must be [C] with C = 4, but got [3] and [4]");
  expect_error(
      [&] {
        dropout_add_layer_norm(x, at::ones({2, 5}), w, w, 0, 0);
      },
      "[dropout_add_layer_norm] residual must have the shape of x [2, 4], but got [2, 5]");
  expect_error(
      [&] { dropout_add_layer_norm(x, at::Tensor(), w, w, 0, 0); },
      "[dropout_add_layer_norm] residual must be a tensor");
  expect_error(
      [&] {
        ops::layer_norm(at::ones({2, 0}), at::ones({0}), at::ones({0}));
      },
      "[layer_norm] x must have a last axis of at least one channel");
  expect_error(
      [&] { ops::layer_norm(x, w, w, -1); }, "[layer_norm] epsilon must be >= 0, but got -1");
  expect_error(
      [&] { ops::layer_norm(x.to(at::kLong), w, w); },
      "[layer_norm] x must be of a floating-point type, but got Long");
  expect_error(
      [&] { ops::layer_norm(x.to(at::kBFloat16), w.to(at::kDouble), w); },
      "[layer_norm] weight must be BFloat16 like the other inputs, but got Double");
  expect_error(
      [&] { ops::layer_norm(x.to(at::kMeta), w, w); },
      "[layer_norm] weight must be on meta like the other inputs, but got cpu");
}

/// Counted by the tensors that a backward pass makes.
TEST(LayerNormOp, GradientsThatNobodyAskedForAreNotComputed) {
  for (const double p : {0.0, 0.3}) {
    const Inputs inputs = random_inputs({9, 16}, at::kDouble);
    const auto function = [&](const Inputs& in) {
      return dropout_add_layer_norm(in[0], in[1], in[2], in[3], p, 21);
    };
    const at::Tensor grad = random_normal({9, 16}, at::kDouble);
    const auto all = seqconv::internal::testing::differentiate(function, inputs, grad).grads;
    for (int set = 1; set < 16; ++set) {
      SCOPED_TRACE(concat("p ", p, " set ", set));
      const auto wants = [&](size_t i) { return (set >> i & 1) != 0; };
      Inputs in;
      for (size_t i = 0; i < 4; ++i)
        in.push_back(inputs[i].clone().requires_grad_(wants(i)));
      const at::Tensor y = function(in);
      const auto calls = seqconv::internal::testing::recorded_calls([&] { y.backward(grad); });
      // x and the residual share theirs without dropout, weight and bias come
      // together.
      const int made = (wants(0) || wants(1) ? 1 : 0) + (wants(0) && p > 0 ? 1 : 0) +
          (wants(2) || wants(3) ? 2 : 0);
      EXPECT_EQ(seqconv::internal::testing::count_calls(calls, "aten::empty_like"), made);
      for (size_t i = 0; i < 4; ++i) {
        ASSERT_EQ(in[i].grad().defined(), wants(i));
        if (wants(i)) {
          EXPECT_LE(seqconv::internal::testing::relative_error(in[i].grad(), all[i]), 1e-14) << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace seqconv::ops
