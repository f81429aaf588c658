#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>

#include "libtorch/ops/conv_form.h"
#include "seqconv/ops/talk.h"

/// Every message of the operators.
namespace seqconv::ops {
using namespace internal;
namespace {

class ConvErrors : public ::testing::TestWithParam<Form> {
 protected:
  ConvCall call = {.form = GetParam(), .sizes = {2, 5, 6, 2, 3, 1}};
  std::vector<at::Tensor> in = call.inputs();

  /// "[lightconv] text" or "[dynamicconv] text".
  std::string message(const std::string& text) const { return concat("[", GetParam(), "] ", text); }
  bool light() const { return GetParam() == Form::kLight; }
  std::string logits() const { return light() ? "weight" : "logits"; }
};

INSTANTIATE_TEST_SUITE_P(
    Both, ConvErrors, ::testing::Values(Form::kLight, Form::kDynamic), [](const auto& info) {
      return info.param == Form::kLight ? "L" : "D";
    });

TEST_P(ConvErrors, NameTheShapeAndTypeOfX) {
  EXPECT_TENSOR_ERROR(
      call.run({at::zeros({5, 6}, at::kDouble), in[1], in[2]}),
      message("x must be [B, T, C], but got [5, 6]"));
  EXPECT_TENSOR_ERROR(
      call.run({in[0].to(at::kHalf), in[1], in[2]}),
      message("x must be Double, Float or BFloat16, but got Half"));
  EXPECT_TENSOR_ERROR(
      call.run({in[0].to(at::kLong), in[1], in[2]}),
      message("x must be Double, Float or BFloat16, but got Long"));
}

TEST_P(ConvErrors, NameTheShapeOfTheLogits) {
  if (light())
    EXPECT_TENSOR_ERROR(
        call.run({in[0], in[1].unsqueeze(1), in[2]}),
        message("weight must be [H, K], but got [2, 1, 3]"));
  else
    EXPECT_TENSOR_ERROR(
        call.run({in[0], in[1].narrow(1, 0, 4), in[2]}),
        message("logits must be [B, T, H, K] with B = 2, T = 5, but got [2, 4, 2, 3]"));
}

TEST_P(ConvErrors, NameMixedTypes) {
  EXPECT_TENSOR_ERROR(
      call.run({in[0], in[1].to(at::kFloat), in[2]}),
      message(logits() + " must have x's type Double, but got Float"));
  EXPECT_TENSOR_ERROR(
      call.run({in[0], in[1], in[2].to(at::kFloat)}),
      message("bias must have x's type Double, but got Float"));
  EXPECT_TENSOR_ERROR(
      call.run({in[0].to(at::kBFloat16), in[1], in[2]}),
      message(logits() + " must have x's type BFloat16 or Float, but got Double"));
  EXPECT_TENSOR_ERROR(
      call.run({in[0].to(at::kFloat), in[1].to(at::kBFloat16), in[2]}),
      message(logits() + " must have x's type Float, but got BFloat16"));
}

TEST_P(ConvErrors, NameHeadsThatDoNotDivideTheChannels) {
  ConvCall odd = call;
  odd.sizes.C = 10;
  odd.sizes.H = 4;
  EXPECT_TENSOR_ERROR(
      odd.run(odd.inputs()), message("channels must be divisible by heads, but got C = 10, H = 4"));
  odd.sizes.H = 0;
  EXPECT_TENSOR_ERROR(odd.run(odd.inputs()), message("heads must be at least 1, but got H = 0"));
  odd.sizes.C = 0;
  odd.sizes.H = 2;
  EXPECT_TENSOR_ERROR(odd.run(odd.inputs()), message("channels must be at least 1, but got C = 0"));
}

TEST_P(ConvErrors, NameTheKernelSizeAndPadding) {
  ConvCall bad = call;
  bad.sizes.K = 0;
  EXPECT_TENSOR_ERROR(
      bad.run(bad.inputs()), message("kernel size must be at least 1, but got K = 0"));
  for (const int64_t padding : {-1, 3}) {
    bad = call;
    bad.sizes.padding_left = padding;
    EXPECT_TENSOR_ERROR(
        bad.run(in), message(concat("padding_left must be in 0 .. K-1 = 2, but got ", padding)));
  }
}

TEST_P(ConvErrors, NameTheBiasAndLengths) {
  EXPECT_TENSOR_ERROR(
      call.run({in[0], in[1], in[2].narrow(0, 0, 5)}),
      message("bias must be [C] = [6], but got [5]"));
  call.lengths = at::tensor({int64_t{1}});
  EXPECT_TENSOR_ERROR(call.run(in), message("lengths must be [B] = [2], but got [1]"));
  call.lengths = at::tensor({1.0, 2.0});
  EXPECT_TENSOR_ERROR(call.run(in), message("lengths must be Long or Int, but got Double"));
  for (const int64_t length : {-1, 6}) {
    call.lengths = at::tensor({int64_t{5}, length});
    EXPECT_TENSOR_ERROR(
        call.run(in),
        message(concat("lengths must be in 0 .. T = 5, but got ", length, " in row 1")));
  }
}

TEST_P(ConvErrors, NameTheDropConnect) {
  for (const double p : {1.0, -0.5}) {
    call.drop = {.p = p};
    EXPECT_TENSOR_ERROR(call.run(in), message(concat("drop_p must be in [0, 1), but got ", p)));
  }
  call.drop = {.p = 0.5, .seed = at::tensor({1, 2})};
  EXPECT_TENSOR_ERROR(
      call.run(in), message("drop_seed must be one int64 element, but got Int [2]"));
  const at::Tensor mask = at::ones(in[1].sizes());
  call.drop = {.p = 0.5, .seed = at::tensor(int64_t{1}), .mask = mask};
  EXPECT_TENSOR_ERROR(
      call.run(in), message("either drop_seed or drop_mask must be given, but got both"));
  call.drop = {.p = 0.5, .mask = at::ones({2, 2})};
  EXPECT_TENSOR_ERROR(
      call.run(in),
      message(
          light() ? "drop_mask must be [H, K] = [2, 3], but got [2, 2]"
                  : "drop_mask must be [B, T, H, K] = [2, 5, 2, 3], but got [2, 2]"));
}

TEST_P(ConvErrors, NameTheNormalisations) {
  const auto op =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow(light() ? "seqconv::lightconv" : "seqconv::dynamicconv", "")
          .typed<at::Tensor(
              const at::Tensor&,
              const at::Tensor&,
              const std::optional<at::Tensor>&,
              c10::SymInt,
              std::string_view,
              bool,
              double,
              const std::optional<at::Tensor>&,
              const std::optional<at::Tensor>&,
              const std::optional<at::Tensor>&)>();
  EXPECT_TENSOR_ERROR(
      op.call(
          in[0],
          in[1],
          in[2],
          1,
          "sparsemax",
          false,
          0.0,
          std::nullopt,
          std::nullopt,
          std::nullopt),
      message("normalization must be 'none', 'softmax', 'sigmoid', 'tanh', 'square', 'abs', 'l1', "
              "'l2', 'abs_l1' or 'abs_l2', but got 'sparsemax'"));
}

TEST_P(ConvErrors, NameTheNormalisationThatEdgesNeed) {
  const std::string wanted =
      message("renormalize_edges needs normalization 'softmax', but got 'none'");
  const Normalization none = Normalization::kNone;
  if (light())
    EXPECT_TENSOR_ERROR(
        lightconv(
            in[0], in[1], {.padding_left = 1, .normalization = none, .renormalize_edges = true}),
        wanted);
  else
    EXPECT_TENSOR_ERROR(
        dynamicconv(
            in[0], in[1], {.padding_left = 1, .normalization = none, .renormalize_edges = true}),
        wanted);
}

TEST_P(ConvErrors, NameTheStateOfAStep) {
  const auto step = [&](const at::Tensor& state, const at::Tensor& position) {
    at::Tensor changed = state;
    return light() ? lightconv_step(in[0], changed, position, in[1])
                   : dynamicconv_step(in[0], changed, position, in[1]);
  };
  const std::string prefix = concat("[", GetParam(), "_step] ");
  const at::Tensor zero = at::tensor(int64_t{0});
  EXPECT_TENSOR_ERROR(
      step(at::zeros({2, 3, 6}, at::kDouble), zero),
      prefix + "state must hold K-1 = 2 inputs, but got 3");
  EXPECT_TENSOR_ERROR(
      step(at::zeros({1, 2, 6}, at::kDouble), zero),
      prefix + "state must be [N, slots, C] with N = 2, C = 6, but got [1, 2, 6]");
  EXPECT_TENSOR_ERROR(
      step(at::zeros({2, 2, 6}), zero), prefix + "state must have x's type Double, but got Float");
  const at::Tensor state = at::zeros({2, 2, 6}, at::kDouble);
  EXPECT_TENSOR_ERROR(
      step(state, at::tensor({1, 2})),
      prefix + "position must be one int64 element, but got Int [2]");
  EXPECT_TENSOR_ERROR(
      step(state, at::tensor(int64_t{-1})), prefix + "position must not be negative, but got -1");
  EXPECT_TENSOR_ERROR(
      step(state, at::tensor(INT64_MAX)),
      prefix + "position must be below 2^62, but got 9223372036854775807");
  EXPECT_TENSOR_ERROR(
      step(state, zero.to(at::kMeta)), prefix + "position must be on x's device cpu, but got meta");
  at::Tensor none = at::zeros({2, 2, 6}, at::kDouble);
  EXPECT_TENSOR_ERROR(
      call.step(in, none, 0, 0), prefix + "x must hold at least one new input, but got [2, 0, 6]");
}

TEST(ConvStateErrors, NameTheKernelSize) {
  EXPECT_TENSOR_ERROR(
      conv_initial_state(1, 0, 4, at::kFloat),
      "[conv_initial_state] kernel size must be at least 1, but got K = 0");
}

class TalkErrors : public ::testing::Test {
 protected:
  at::Tensor x = at::zeros({2, 5, 6});
  at::Tensor left = at::zeros({2, 5, 2});
  TalkOptions options = {.max_left = 3, .max_right = 0};
};

TEST_F(TalkErrors, NameShapesAndTypes) {
  EXPECT_TENSOR_ERROR(talk(x[0], left, {}, options), "[talk] x must be [B, T, C], but got [5, 6]");
  EXPECT_TENSOR_ERROR(
      talk(x, left.narrow(1, 0, 4), {}, options),
      "[talk] offset_left must be [B, T, H] with B = 2, T = 5, but got [2, 4, 2]");
  EXPECT_TENSOR_ERROR(
      talk(x, left.to(at::kDouble), {}, options),
      "[talk] offset_left must have x's type Float, but got Double");
  EXPECT_TENSOR_ERROR(
      talk(x, at::zeros({2, 5, 4}), {}, options),
      "[talk] channels must be divisible by heads, but got C = 6, H = 4");
  EXPECT_TENSOR_ERROR(
      talk(x, left, at::zeros({2, 5, 3}), options),
      "[talk] offset_right must be as offset_left, Float [2, 5, 2], but got Float [2, 5, 3]");
  const at::Tensor x16 = x.to(at::kBFloat16);
  EXPECT_TENSOR_ERROR(
      talk(x16, left, left.to(at::kBFloat16), options),
      "[talk] offset_right must be as offset_left, Float [2, 5, 2], but got BFloat16 [2, 5, 2]");
}

TEST_F(TalkErrors, NameTheReachAndLengths) {
  options.max_left = -1;
  EXPECT_TENSOR_ERROR(
      talk(x, left, {}, options),
      "[talk] max_left and max_right must not be negative, but got -1 and 0");
  options = {.max_left = 3, .max_right = 2};
  EXPECT_TENSOR_ERROR(
      talk(x, left, {}, options), "[talk] max_right must be 0 without offset_right, but got 2");
  options = {.max_left = 3, .lengths = at::tensor({int64_t{5}, int64_t{6}})};
  EXPECT_TENSOR_ERROR(
      talk(x, left, {}, options), "[talk] lengths must be in 0 .. T = 5, but got 6 in row 1");
}

TEST_F(TalkErrors, NameTheStateOfAStep) {
  at::Tensor state = talk_initial_state(2, 3, 6, x.options());
  const at::Tensor position = at::tensor(int64_t{0});
  left[1][2][0] = 1.5;
  EXPECT_TENSOR_ERROR(
      talk_step(x, state, position, left, 3),
      "[talk_step] offset_left must not exceed max_offset = 1 (state of 3 inputs, max_left = 3), "
      "but got 1.5");
  left.zero_();
  EXPECT_TENSOR_ERROR(
      talk_step(x, state, position.to(at::kMeta), left, 3),
      "[talk_step] position must be on x's device cpu, but got meta");
  EXPECT_TENSOR_ERROR(
      talk_initial_state(2, -1, 6, x.options()),
      "[talk_initial_state] max_left must not be negative, but got -1");
  EXPECT_TENSOR_ERROR(
      talk_initial_state(2, 3, 6, x.options(), -1.0),
      "[talk_initial_state] max_offset must be finite and not negative, but got -1");
}

TEST(BackwardErrors, NameTheGradient) {
  const auto op = c10::Dispatcher::singleton()
                      .findSchemaOrThrow("seqconv::talk_backward", "")
                      .typed<std::tuple<at::Tensor, at::Tensor, at::Tensor>(
                          const at::Tensor&,
                          const at::Tensor&,
                          const at::Tensor&,
                          const std::optional<at::Tensor>&,
                          int64_t,
                          int64_t,
                          const std::optional<at::Tensor>&,
                          std::array<bool, 3>)>();
  const std::array<bool, 3> all = {true, true, true};
  const at::Tensor x = at::zeros({2, 5, 6}), left = at::zeros({2, 5, 2});
  EXPECT_TENSOR_ERROR(
      op.call(x[0], x, left, std::nullopt, 3, 0, std::nullopt, all),
      "[talk_backward] the gradient must be as x = [2, 5, 6], but got [5, 6]");
  EXPECT_TENSOR_ERROR(
      op.call(x.to(at::kDouble), x, left, std::nullopt, 3, 0, std::nullopt, all),
      "[talk_backward] the gradient must have x's type Float, but got Double");
}

}  // namespace
}  // namespace seqconv::ops
