#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include "libtorch/ops/conv_form.h"
#include "libtorch/ops/conv_ops.h"
#include "libtorch/ops/recorded_calls.h"
#include "support/tolerances.h"

/// Properties of both convolutions over awkward sizes.
namespace seqconv::ops {
using namespace internal;
namespace {

using testing::differentiate;
using testing::Differentiated;
using testing::relative_error;
using testing::tolerance;

using ConvOp = ConvDeviceTest;
using ConvGradient = ConvDeviceTest;

INSTANTIATE_TEST_SUITE_P(Both, ConvOp, conv_parameters(), conv_parameter_name);
INSTANTIATE_TEST_SUITE_P(Both, ConvGradient, conv_parameters(), conv_parameter_name);

/// Channels and heads: R = 1, odd R, R beyond one and two tiles of channels.
constexpr std::pair<int64_t, int64_t> kWidths[] = {
    {6, 2}, {5, 5}, {15, 3}, {35, 7}, {32, 2}, {67, 1}, {260, 2}, {4, 1}};

/// Every length with every kernel width, turning through the channel widths.
std::vector<ConvSizes> awkward_sizes() {
  std::vector<ConvSizes> sizes;
  size_t turn = 0;
  for (const int64_t T : {0, 1, 2, 31, 33, 65, 130})
    for (const int64_t K : {1, 2, 3, 4, 7, 15, 64, 70}) {
      const auto [C, H] = kWidths[turn++ % std::size(kWidths)];
      for (const int64_t padding : {K - 1, K / 2, int64_t{0}})
        if (padding == K - 1 || padding != 0 || turn % 3 == 0)
          sizes.push_back({2, T, C, H, K, padding});
    }
  return sizes;
}

/// Operator in every type against the reference in float64 on the same numbers.
void expect_reference(const ConvCall& call) {
  const auto exact = call.inputs();
  const at::Tensor grad = exact[0].flip(2);
  const Differentiated want = differentiate(call.reference_function(), exact, grad);
  for (const at::ScalarType type : testing::types()) {
    SCOPED_TRACE(concat(call.sizes, " ", c10::toString(type)));
    std::vector<at::Tensor> rounded;
    for (const at::Tensor& input : exact)
      rounded.push_back(input.to(type));
    const Differentiated got = differentiate(call.function(), rounded, grad.to(type));
    EXPECT_EQ(got.y.scalar_type(), type);
    EXPECT_LE(relative_error(got.y, want.y), tolerance(type)) << "y";
    for (size_t i = 0; i < got.grads.size(); ++i)
      EXPECT_LE(relative_error(got.grads[i], want.grads[i]), tolerance(type)) << "gradient " << i;
  }
}

TEST_P(ConvOp, MatchesTheReferenceOnAwkwardSizes) {
  for (const ConvSizes& sizes : awkward_sizes())
    expect_reference({.form = GetParam(), .sizes = sizes});
}

TEST_P(ConvOp, MatchesTheReferenceWithoutNormalisation) {
  for (const int64_t K : {1, 3, 6, 9})
    expect_reference(
        {.form = GetParam(),
         .sizes = {2, 70, 12, 4, K, K / 2},
         .normalization = Normalization::kNone});
}

TEST_P(ConvOp, MatchesTheReferenceWithEveryNormalisation) {
  for (const auto& [name, normalization] : EnumNames<Normalization>::kNames) {
    SCOPED_TRACE(name);
    expect_reference(
        {.form = GetParam(), .sizes = {2, 20, 12, 4, 5, 2}, .normalization = normalization});
  }
}

/// Logits of padding may be anything, also where kernels get taps of them.
TEST(NormalizedTaps, NoPaddingReachesAGradient) {
  const at::Tensor x = at::randn({2, 6, 4}), lengths = at::tensor({6, 3});
  at::Tensor logits = at::randn({2, 6, 2, 3});
  logits[1].narrow(0, 3, 3).fill_(std::nan(""));
  logits.requires_grad_();
  for (const auto& [name, normalization] : EnumNames<Normalization>::kNames) {
    SCOPED_TRACE(name);
    const at::Tensor y = dynamicconv(
        x,
        logits,
        ConvOptions{
            .padding_left = 1, .normalization = normalization, .lengths = lengths.to(at::kLong)});
    const at::Tensor grad = torch::autograd::grad({y.sum()}, {logits})[0];
    EXPECT_TRUE(y.isfinite().all().item<bool>());
    EXPECT_TRUE(grad.isfinite().all().item<bool>());
    EXPECT_TRUE(grad[1].narrow(0, 3, 3).eq(0).all().item<bool>());
  }
}

TEST_P(ConvOp, MatchesTheReferenceWithRenormalizedEdges) {
  for (const int64_t K : {1, 2, 7, 15, 70})
    for (const int64_t padding : {K - 1, K / 2}) {
      ConvCall call = {
          .form = GetParam(), .sizes = {3, 70, 12, 3, K, padding}, .renormalize_edges = true};
      expect_reference(call);
      call.lengths = at::tensor({int64_t{70}, int64_t{0}, int64_t{5}});
      call.drop = {.p = 0.3, .seed = at::tensor(int64_t{7})};
      expect_reference(call);
    }
}

TEST_P(ConvOp, RenormalizedTapsKeepAConstantInput) {
  ConvCall call = {.form = GetParam(), .sizes = {2, 9, 6, 2, 31, 15}, .renormalize_edges = true};
  auto in = call.inputs();
  in[0].fill_(1);
  in[1].mul_(50);  // where dividing by the sum of what is left would fail
  in[2].zero_();
  EXPECT_LE(relative_error(call.run(in), in[0]), tolerance(at::kDouble));
}

TEST_P(ConvOp, TakesWeightsOfAnySize) {
  for (const double factor : {1e-3, 30.0, 1e3, 1e30}) {
    const ConvCall call = {.form = GetParam(), .sizes = {2, 9, 6, 2, 5, 2}};
    auto in = call.inputs(at::kFloat);
    in[1].mul_(factor);
    EXPECT_LE(relative_error(call.run(in), call.reference(in)), 1e-5) << factor;
  }
}

TEST_P(ConvOp, MatchesTheReferenceWithLengths) {
  for (const auto& lengths : {std::vector<int64_t>{70, 0, 13}, std::vector<int64_t>{64, 65, 1}})
    expect_reference(
        {.form = GetParam(), .sizes = {3, 70, 12, 3, 7, 3}, .lengths = at::tensor(lengths)});
}

TEST_P(ConvOp, AnEmptyBatchOrSequenceGivesAnEmptyResult) {
  for (const auto& [B, T] : {std::pair<int64_t, int64_t>{0, 5}, {2, 0}, {0, 0}}) {
    const ConvCall call = {.form = GetParam(), .sizes = {B, T, 6, 2, 3, 2}};
    const auto in = call.inputs();
    const Differentiated got = differentiate(call.function(), in, at::zeros_like(in[0]));
    EXPECT_EQ(got.y.sizes(), in[0].sizes());
    EXPECT_EQ(got.grads[1].sizes(), in[1].sizes());
    EXPECT_EQ(got.grads[2].abs().sum().item<double>(), 0);
  }
}

TEST_P(ConvOp, TakesStridedInputs) {
  const ConvCall call = {.form = GetParam(), .sizes = {2, 9, 6, 2, 3, 1}};
  const auto dense = call.inputs();
  std::vector<at::Tensor> strided;
  for (const at::Tensor& input : dense)
    strided.push_back(at::stack({input, input}, -1).select(-1, 1));
  ASSERT_FALSE(strided[0].is_contiguous());
  EXPECT_TRUE(call.run(strided).equal(call.run(dense)));
  const at::Tensor grad = at::randn({6, 9, 2}).to(at::kDouble).permute({2, 1, 0});
  const Differentiated a = differentiate(call.function(), strided, grad);
  const Differentiated b = differentiate(call.function(), dense, grad.contiguous());
  for (size_t i = 0; i < a.grads.size(); ++i)
    EXPECT_TRUE(a.grads[i].equal(b.grads[i])) << i;
}

TEST_P(ConvOp, ARowIsTheSameAloneAndInABatch) {
  const ConvCall call = {.form = GetParam(), .sizes = {4, 70, 10, 2, 7, 3}};
  const auto in = call.inputs(at::kFloat);
  const at::Tensor all = call.run(in);
  ConvCall one = call;
  one.sizes.B = 1;
  for (int64_t b = 0; b < 4; ++b) {
    const at::Tensor logits = GetParam() == Form::kLight ? in[1] : in[1].narrow(0, b, 1);
    EXPECT_TRUE(one.run({in[0].narrow(0, b, 1), logits, in[2]}).equal(all.narrow(0, b, 1)));
  }
}

TEST_P(ConvOp, PaddingChangesNothingWhateverItHolds) {
  ConvCall call = {.form = GetParam(), .sizes = {1, 40, 10, 2, 7, 3}};
  const auto in = call.inputs(at::kFloat);
  const at::Tensor grad = at::randn_like(in[0]);
  const Differentiated want = differentiate(call.function(), in, grad);
  const auto pad = [](const at::Tensor& t) {
    return at::cat({t, at::full_like(t.narrow(1, 0, 30), NAN)}, 1);
  };
  ConvCall padded = call;
  padded.sizes.T = 70;
  padded.lengths = at::tensor({int64_t{40}});
  const bool dynamic = GetParam() == Form::kDynamic;
  const Differentiated got = differentiate(
      padded.function(), {pad(in[0]), dynamic ? pad(in[1]) : in[1], in[2]}, pad(grad));
  const auto expect_padded = [](const at::Tensor& t, const at::Tensor& w) {
    EXPECT_TRUE(t.narrow(1, 0, 40).equal(w));
    EXPECT_TRUE(t.narrow(1, 40, 30).eq(0).all().item<bool>());
  };
  expect_padded(got.y, want.y);
  expect_padded(got.grads[0], want.grads[0]);
  if (dynamic)
    expect_padded(got.grads[1], want.grads[1]);
  else
    EXPECT_LE(relative_error(got.grads[1], want.grads[1]), 1e-6);
  EXPECT_TRUE(got.grads[2].equal(want.grads[2]));
}

TEST_P(ConvOp, TheCausalFormSeesNoFuture) {
  for (const int64_t K : {1, 4, 31}) {
    ConvCall call = {.form = GetParam(), .sizes = {1, 70, 6, 2, K, K - 1}};
    const auto in = call.inputs(at::kFloat);
    const at::Tensor whole = call.run(in);
    for (const int64_t T : {1, 30, 64, 69}) {
      ConvCall part = call;
      part.sizes.T = T;
      const at::Tensor logits = GetParam() == Form::kLight ? in[1] : in[1].narrow(1, 0, T);
      EXPECT_TRUE(part.run({in[0].narrow(1, 0, T), logits, in[2]}).equal(whole.narrow(1, 0, T)))
          << "K " << K << " T " << T;
    }
  }
}

/// Feeds the sequence in chunks of `chunk` inputs and compares with the full
/// form.
void expect_steps(const ConvCall& call, at::ScalarType type, int64_t chunk) {
  const auto in = call.inputs(type);
  const at::Tensor want = call.run(in);
  const ConvSizes& s = call.sizes;
  at::Tensor state = conv_initial_state(s.B, s.K, s.C, in[0].options());
  for (int64_t t = 0; t < s.T; t += chunk) {
    const int64_t count = std::min(chunk, s.T - t);
    const at::Tensor got = call.step(in, state, t, count);
    EXPECT_LE(relative_error(got, want.narrow(1, t, count)), 2 * tolerance(type))
        << s << " chunk " << chunk << " at " << t;
  }
}

TEST_P(ConvOp, StepsOfAnySizeEqualTheFullForm) {
  for (const int64_t K : {1, 2, 3, 4, 7, 64})
    for (const int64_t chunk : {1, 2, 5, 33, 70})
      for (const at::ScalarType type : testing::types())
        expect_steps({.form = GetParam(), .sizes = {3, 70, 10, 2, K, K - 1}}, type, chunk);
}

TEST_P(ConvOp, StepsRenormalizeTheirFirstOutputs) {
  for (const int64_t K : {1, 2, 7, 64})
    for (const int64_t chunk : {1, 5, 70})
      expect_steps(
          {.form = GetParam(), .sizes = {3, 70, 10, 2, K, K - 1}, .renormalize_edges = true},
          at::kFloat,
          chunk);
}

TEST_P(ConvOp, AStepWritesIntoAStridedState) {
  const ConvCall call = {.form = GetParam(), .sizes = {2, 4, 6, 2, 3, 2}};
  const auto in = call.inputs();
  at::Tensor dense = conv_initial_state(2, 3, 6, in[0].options());
  at::Tensor strided = at::zeros({6, 2, 2}, at::kDouble).permute({1, 2, 0});
  for (int64_t t = 0; t < 4; ++t)
    EXPECT_TRUE(call.step(in, strided, t, 1).equal(call.step(in, dense, t, 1)));
  EXPECT_TRUE(strided.equal(dense));
  EXPECT_NE(dense.abs().sum().item<double>(), 0);
}

TEST_P(ConvOp, AStepOfNoRowsGivesNone) {
  const ConvCall call = {.form = GetParam(), .sizes = {0, 1, 6, 2, 3, 2}};
  const auto in = call.inputs();
  at::Tensor state = conv_initial_state(0, 3, 6, in[0].options());
  EXPECT_EQ(call.step(in, state, 0, 1).sizes(), in[0].sizes());
  EXPECT_EQ(state.size(0), 0);
}

/// What stands around CUDA's kernels, which know the softmax and none alone. A
/// row of zeros has no norm.
TEST(NormalizedTaps, BackwardEqualsAutograd) {
  at::Tensor logits = at::randn({3, 4, 7}, at::kDouble);
  logits[1].zero_();
  logits.requires_grad_();
  const at::Tensor grad = at::randn_like(logits);
  for (const auto& [name, normalization] : EnumNames<Normalization>::kNames) {
    SCOPED_TRACE(name);
    const at::Tensor want = torch::autograd::grad(
        {normalize_reference(logits, normalization)},
        {logits},
        {grad},
        /*retain_graph=*/false,
        /*create_graph=*/false,
        /*allow_unused=*/true)[0];
    const at::Tensor got = normalize_reference_backward(logits.detach(), normalization, grad);
    EXPECT_LE(relative_error(got, want.defined() ? want : grad), tolerance(at::kDouble));
  }
}

TEST_P(ConvGradient, EqualsCentralDifferences) {
  for (const auto normalization : {Normalization::kSoftmax, Normalization::kNone})
    for (const ConvSizes& sizes :
         {ConvSizes{2, 5, 6, 2, 3, 2}, {1, 3, 3, 1, 4, 1}, {1, 4, 4, 4, 7, 3}}) {
      const ConvCall call = {.form = GetParam(), .sizes = sizes, .normalization = normalization};
      testing::expect_numerical_gradients(call.function(), call.inputs());
    }
}

TEST_P(ConvGradient, EqualsCentralDifferencesWithDropConnectAndLengths) {
  ConvCall call = {.form = GetParam(), .sizes = {2, 5, 6, 2, 3, 1}};
  call.lengths = at::tensor({int64_t{5}, int64_t{2}});
  call.drop = {.p = 0.3, .seed = at::tensor(int64_t{7})};
  testing::expect_numerical_gradients(call.function(), call.inputs());
}

TEST_P(ConvGradient, HasASecondDerivative) {
  ConvCall call = {.form = GetParam(), .sizes = {2, 4, 4, 2, 3, 1}};
  testing::expect_numerical_second_gradients(call.function(), call.inputs());
  call.lengths = at::tensor({int64_t{4}, int64_t{2}});
  call.drop = {.p = 0.3, .seed = at::tensor(int64_t{7})};
  testing::expect_numerical_second_gradients(call.function(), call.inputs());
}

TEST_P(ConvGradient, AStepRefusesInputsThatWantOne) {
  const ConvCall call = {.form = GetParam()};
  const auto in = testing::leaves(call.inputs());
  at::Tensor state = conv_initial_state(2, 3, 6, at::kDouble);
  EXPECT_TENSOR_ERROR(
      call.step(in, state, 0, 1),
      concat(
          "[",
          GetParam(),
          "_step] has no gradient and must be called without grad mode (torch.no_grad()), but got "
          "an input that requires one"));
  const c10::AutoGradMode off(false);
  EXPECT_EQ(call.step(in, state, 0, 1).size(1), 1);
}

/// Every set of x, logits and bias that may want a gradient.
TEST_P(ConvGradient, OnlyThoseThatAreAskedForAreComputed) {
  for (const int64_t K : {3, 15, 31})
    for (const bool renormalize : {false, true}) {
      ConvCall call = {.form = GetParam().value, .sizes = {2, 70, 12, 3, K, 1}};
      call.renormalize_edges = renormalize;
      call.lengths = at::tensor({70, 40}, at::kLong);
      SCOPED_TRACE(concat("K ", K));
      const auto inputs = call.inputs();
      testing::expect_only_wanted_gradients(
          call.function(),
          inputs,
          at::randn_like(inputs[0]),
          GetParam().value == Form::kLight ? "seqconv::lightconv_backward"
                                           : "seqconv::dynamicconv_backward");
    }
}

}  // namespace
}  // namespace seqconv::ops
