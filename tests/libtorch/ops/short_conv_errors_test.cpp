#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "seqconv/ops/short_conv.h"
#include "support/gradients.h"

/// Every message of short_conv.
namespace seqconv::ops {
using namespace internal;
namespace {

struct ShortConvErrors : ::testing::Test {
  at::Tensor x = at::zeros({2, 5, 6}), weight = at::zeros({3, 4}),
             dynamic = at::zeros({2, 5, 2, 4});

  /// With weight, and what is said.
  template <class Change>
  at::Tensor run(const Change& change) const {
    ShortConvOptions options{.weight = weight};
    change(options);
    return short_conv(x, options);
  }
};

TEST_F(ShortConvErrors, NameTheTaps) {
  EXPECT_TENSOR_ERROR(
      short_conv(x, {}), "[short_conv] taps must be in weight or dynamic, but got none");
  EXPECT_TENSOR_ERROR(
      short_conv(x, {.weight = at::zeros({3})}), "[short_conv] weight must be [G, K], but got [3]");
  EXPECT_TENSOR_ERROR(
      short_conv(x, {.weight = at::zeros({4, 3})}),
      "[short_conv] weight must have a number of kernels that divides C = 6, but got G = 4");
  EXPECT_TENSOR_ERROR(
      short_conv(x, {.weight = at::zeros({3, 0})}),
      "[short_conv] kernel size must be at least 1, but got K = 0");
  EXPECT_TENSOR_ERROR(
      short_conv(x, {.dynamic = at::zeros({2, 4, 2, 4})}),
      "[short_conv] dynamic must be [B, T, H, K] beside x [2, 5, 6], but got [2, 4, 2, 4]");
  EXPECT_TENSOR_ERROR(
      short_conv(x, {.dynamic = at::zeros({2, 5, 4, 4})}),
      "[short_conv] dynamic must have a number of kernels that divides C = 6, but got H = 4");
  EXPECT_TENSOR_ERROR(
      short_conv(x, {.weight = at::zeros({3, 3}), .dynamic = dynamic}),
      "[short_conv] weight must have as many taps as dynamic, K = 4, but got 3");
  EXPECT_TENSOR_ERROR(
      short_conv(x, {.weight = at::zeros({3, 4}, at::kDouble)}),
      "[short_conv] weight must have x's type Float, but got Double");
}

TEST_F(ShortConvErrors, NameTheOptions) {
  EXPECT_TENSOR_ERROR(
      run([](auto& o) { o.dilation = 0; }),
      "[short_conv] dilation must be at least 1, but got D = 0");
  EXPECT_TENSOR_ERROR(
      run([](auto& o) { o.padding_left = 4; }),
      "[short_conv] padding_left must be in 0 .. K-1 = 3, but got 4");
  EXPECT_TENSOR_ERROR(
      run([&](auto& o) {
        o.dynamic = dynamic;
        o.normalization = Normalization::kSoftmax;
      }),
      "[short_conv] normalization must be 'none' for weight and dynamic together, but got "
      "'softmax'");
  EXPECT_TENSOR_ERROR(
      run([](auto& o) { o.renormalize_edges = true; }),
      "[short_conv] renormalize_edges needs normalization 'softmax', but got 'none'");
  EXPECT_TENSOR_ERROR(
      run([](auto& o) { o.bias = at::zeros({5}); }),
      "[short_conv] bias must be [C] = [6], but got [5]");
}

TEST_F(ShortConvErrors, NameTheSequences) {
  const auto with = [&](const at::Tensor& offsets) {
    return short_conv(at::zeros({5, 6}), {.weight = weight, .cu_seqlens = offsets});
  };
  EXPECT_TENSOR_ERROR(
      with(at::tensor({1, 5}, at::kInt)), "[short_conv] cu_seqlens must begin with 0, but got 1");
  EXPECT_TENSOR_ERROR(
      with(at::tensor({0, 3, 2, 5}, at::kLong)),
      "[short_conv] cu_seqlens must not decrease, but got 2 after 3 at 2");
  EXPECT_TENSOR_ERROR(
      with(at::tensor({0, 4}, at::kInt)), "[short_conv] cu_seqlens must end with N = 5, but got 4");
  EXPECT_TENSOR_ERROR(
      with(at::tensor({0.0, 5.0})), "[short_conv] cu_seqlens must be Long or Int, but got Double");
  EXPECT_TENSOR_ERROR(
      with(at::zeros({0}, at::kInt)), "[short_conv] cu_seqlens must be [B + 1], but got [0]");
  EXPECT_TENSOR_ERROR(
      run([](auto& o) {
        o.cu_seqlens = at::tensor({0, 5}, at::kInt);
      }),
      "[short_conv] x must be [N, C] or [1, N, C] beside cu_seqlens, but got [2, 5, 6]");
  EXPECT_TENSOR_ERROR(
      run([](auto& o) {
        o.seq_idx = at::zeros({2, 4}, at::kInt);
      }),
      "[short_conv] seq_idx must be [B, T] of x [2, 5, 6], but got [2, 4]");
  EXPECT_TENSOR_ERROR(
      run([](auto& o) {
        o.seq_idx = at::tensor({0, 0, 1, 0, 0, 0, 0, 0, 0, 0}).view({2, 5});
      }),
      "[short_conv] seq_idx must have the positions of a sequence together, but got 0 again in row "
      "0 at 3");
  EXPECT_TENSOR_ERROR(
      run([](auto& o) {
        o.lengths = at::zeros({2}, at::kInt);
        o.seq_idx = at::zeros({2, 5}, at::kInt);
      }),
      "[short_conv] at most one of lengths, cu_seqlens and seq_idx must be given, but got several");
  EXPECT_TENSOR_ERROR(
      run([](auto& o) { o.lengths = at::full({2}, 6, at::kInt); }),
      "[short_conv] lengths must be in 0 .. T = 5, but got 6 in row 0");
}

TEST_F(ShortConvErrors, NameTheInitialState) {
  EXPECT_TENSOR_ERROR(
      run([](auto& o) {
        o.initial_state = at::zeros({2, 4, 6});
      }),
      "[short_conv] initial_state must be [B, (K-1) D, C] with B = 2, (K-1) D = 3, C = 6, but got "
      "[2, 4, 6]");
  EXPECT_TENSOR_ERROR(
      run([](auto& o) {
        o.initial_state = at::zeros({2, 3, 6}, at::kDouble);
      }),
      "[short_conv] initial_state must have x's type Float, but got Double");
  EXPECT_TENSOR_ERROR(
      run([](auto& o) {
        o.initial_state = at::zeros({2, 3, 6});
        o.padding_left = 1;
      }),
      "[short_conv] padding_left must be K-1 = 3 beside an initial state, but got 1");
}

TEST_F(ShortConvErrors, NameTheStatesOfSteps) {
  ShortConvState state = short_conv_initial_state(2, 4, 6, at::kFloat, 1, 2);
  const auto with = [&](const ShortConvStepOptions& options) {
    return short_conv_step(x, state, options);
  };
  EXPECT_TENSOR_ERROR(
      with({.weight = at::zeros({3, 7})}),
      "[short_conv_step] the state's ring must be [M, slots, C] with C = 6 and (K-1) D = 6 slots "
      "or "
      "more, but got [2, 5, 6]");
  EXPECT_TENSOR_ERROR(
      with({.weight = weight, .state_indices = at::tensor({0, 2}, at::kInt)}),
      "[short_conv_step] state_indices must be below M = 2, or negative for padding, but got 2 at "
      "1");
  EXPECT_TENSOR_ERROR(
      with({.weight = weight, .state_indices = at::tensor({1, 1}, at::kLong)}),
      "[short_conv_step] state_indices must name a row of the state once, but got 1 again at 1");
  EXPECT_TENSOR_ERROR(
      with({.weight = weight, .state_indices = at::zeros({1}, at::kLong)}),
      "[short_conv_step] state_indices must be [N] with N = 2, but got [1]");
  EXPECT_TENSOR_ERROR(
      short_conv_step(at::zeros({3, 1, 6}), state, {.weight = weight}),
      "[short_conv_step] the state must have N = 3 rows without state_indices, but got 2");
  const at::Tensor before = state.ring.clone();
  for (const auto& [seen, most] :
       std::vector<std::pair<int64_t, int64_t>>{{-5, 3}, {4, 3}, {0, INT64_MAX}}) {
    state.positions[1][0] = seen;
    state.positions[1][1] = most;
    EXPECT_TENSOR_ERROR(
        with({.weight = weight}),
        concat(
            "[short_conv_step] the state's positions must be inputs seen, at least 0, and the most "
            "there ever were, at least as many, but got ",
            seen,
            " and ",
            most,
            " of row 1"));
  }
  EXPECT_TRUE(at::equal(state.ring, before));
  state.positions.zero_();
  EXPECT_TENSOR_ERROR(
      short_conv_last_inputs(state, 6),
      "[short_conv_last_inputs] count must be in 0 .. 5, the slots of the state's ring, but got 6");
}

TEST_F(ShortConvErrors, NameInputsThatCannotBeTakenBack) {
  ShortConvState state = short_conv_initial_state(2, 4, 6, at::kFloat, 1, 2);
  const auto back = [&](int64_t first, int64_t second) {
    short_conv_rollback(state, at::tensor({first, second}, at::kLong), 4);
  };
  EXPECT_TENSOR_ERROR(
      back(0, 1),
      "[short_conv_rollback] counts must be in 0 .. 0, the inputs of row 1 that the state can take "
      "back, but got 1");
  short_conv_step(x, state, {.weight = weight});
  EXPECT_TENSOR_ERROR(
      back(3, 0),
      "[short_conv_rollback] counts must be in 0 .. 2, the inputs of row 0 that the state can take "
      "back, but got 3");
  EXPECT_TENSOR_ERROR(
      back(0, -1),
      "[short_conv_rollback] counts must be in 0 .. 2, the inputs of row 1 that the state can take "
      "back, but got -1");
  back(1, 0);
  EXPECT_EQ(state.positions[0][0].item<int64_t>(), 4);
  // Slots of inputs that were taken back are not those before them again.
  EXPECT_TENSOR_ERROR(
      back(2, 0),
      "[short_conv_rollback] counts must be in 0 .. 1, the inputs of row 0 that the state can take "
      "back, but got 2");
}

TEST_F(ShortConvErrors, NameAGradientOfSteps) {
  ShortConvState state = short_conv_initial_state(2, 4, 6, at::kFloat);
  EXPECT_TENSOR_ERROR(
      short_conv_step(x.clone().requires_grad_(true), state, {.weight = weight}),
      "[short_conv_step] has no gradient and must be called without grad mode (torch.no_grad()), "
      "but got an input that requires one");
}

TEST_F(ShortConvErrors, NothingIsWrongAboutNothing) {
  EXPECT_EQ(short_conv(at::zeros({0, 5, 6}), {.weight = weight}).numel(), 0);
  EXPECT_EQ(short_conv(at::zeros({2, 0, 6}), {.weight = weight}).numel(), 0);
  EXPECT_EQ(
      short_conv(at::zeros({0, 6}), {.weight = weight, .cu_seqlens = at::tensor({0}, at::kInt)})
          .numel(),
      0);
  EXPECT_EQ(
      short_conv(
          at::zeros({0, 6}), {.weight = weight, .cu_seqlens = at::tensor({0, 0, 0}, at::kInt)})
          .numel(),
      0);
}

}  // namespace
}  // namespace seqconv::ops
