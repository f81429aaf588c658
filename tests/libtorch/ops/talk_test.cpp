#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "libtorch/ops/on_device.h"
#include "libtorch/ops/recorded_calls.h"
#include "support/gradients.h"
#include "support/tolerances.h"

/// Properties of TaLK over awkward sizes.
namespace seqconv::ops {
using namespace internal;
namespace {

using testing::differentiate;
using testing::Differentiated;
using testing::relative_error;
using testing::tolerance;

struct TalkCall {
  int64_t B = 2, T = 5, C = 6, H = 2;
  int64_t max_left = 3, max_right = 2;
  bool causal = false;
  double largest = 1;  ///< offsets are in (0, largest)
  std::optional<at::Tensor> lengths = std::nullopt;

  /// {x, left, right}; offsets are multiples of 1/256 that never put an edge
  /// on a whole position, exact in bfloat16 up to 1.
  std::vector<at::Tensor> inputs(at::ScalarType type = at::kDouble) const {
    const at::Tensor x = at::randn({B, T, C}, at::kFloat).to(at::kBFloat16).to(type);
    return {x, offsets(type), causal ? at::Tensor() : offsets(type)};
  }

  at::Tensor run(const std::vector<at::Tensor>& in) const {
    return device::talk(in[0], in[1], right(in), options());
  }
  at::Tensor reference(const std::vector<at::Tensor>& in) const {
    return talk_reference(in[0], in[1], right(in), options());
  }
  testing::TensorFunction function() const {
    return [this](const auto& in) { return run(in); };
  }
  testing::TensorFunction reference_function() const {
    return [this](const auto& in) { return reference(in); };
  }
  TalkOptions options() const { return {max_left, causal ? 0 : max_right, lengths}; }

 private:
  at::Tensor offsets(at::ScalarType type) const {
    const int64_t most = static_cast<int64_t>(largest * 128);
    const at::Tensor odd = at::randint(0, most, {B, T, H}, at::kLong) * 2 + 1;
    return odd.to(type) / 256;
  }
  static std::optional<at::Tensor> right(const std::vector<at::Tensor>& in) {
    return in[2].defined() ? std::optional(in[2]) : std::nullopt;
  }
};

std::ostream& operator<<(std::ostream& out, const TalkCall& c) {
  return out << "B " << c.B << " T " << c.T << " C " << c.C << " H " << c.H << " max_left "
             << c.max_left << " max_right " << c.max_right << (c.causal ? " causal" : "")
             << " largest " << c.largest;
}

class TalkOp : public ::testing::TestWithParam<at::DeviceType> {
 protected:
  void SetUp() override {
    SEQCONV_REQUIRE_DEVICE(GetParam());
    at::manual_seed(1);
  }

 private:
  testing::DeviceScope scope_{GetParam()};
};
using TalkGradient = TalkOp;

INSTANTIATE_TEST_SUITE_P(
    Each, TalkOp, ::testing::Values(at::kCPU, at::kCUDA), [](const auto& info) {
      return info.param == at::kCPU ? "Cpu" : "Cuda";
    });
INSTANTIATE_TEST_SUITE_P(
    Each, TalkGradient, ::testing::Values(at::kCPU, at::kCUDA), [](const auto& info) {
      return info.param == at::kCPU ? "Cpu" : "Cuda";
    });

/// Operator in `type` against the reference in float64 on the same numbers.
void expect_reference(const TalkCall& call, at::ScalarType type, at::ScalarType offset_type) {
  SCOPED_TRACE(concat(call, " ", c10::toString(type)));
  const auto exact = call.inputs();
  std::vector<at::Tensor> rounded = {exact[0].to(type)};
  for (size_t i = 1; i < 3; ++i)
    rounded.push_back(exact[i].defined() ? exact[i].to(offset_type) : exact[i]);
  const at::Tensor grad = exact[0].flip(2);
  const Differentiated want = differentiate(call.reference_function(), exact, grad);
  const Differentiated got = differentiate(call.function(), rounded, grad.to(type));
  EXPECT_EQ(got.y.scalar_type(), type);
  EXPECT_LE(relative_error(got.y, want.y), tolerance(type)) << "y";
  for (size_t i = 0; i < got.grads.size(); ++i)
    EXPECT_LE(relative_error(got.grads[i], want.grads[i]), tolerance(type)) << "gradient " << i;
}

void expect_reference_in_all_types(const TalkCall& call) {
  expect_reference(call, at::kDouble, at::kDouble);
  expect_reference(call, at::kFloat, at::kFloat);
  for (const at::ScalarType type : testing::types())
    if (c10::elementSize(type) == 2) {
      expect_reference(call, type, at::kFloat);
      if (call.largest <= 1)
        expect_reference(call, type, type);
    }
}

TEST_P(TalkOp, MatchesTheReferenceOnAwkwardSizes) {
  constexpr std::pair<int64_t, int64_t> kWidths[] = {
      {6, 2}, {5, 5}, {15, 3}, {35, 7}, {67, 1}, {260, 2}};
  size_t turn = 0;
  for (const int64_t T : {1, 2, 31, 33, 65, 130})
    for (const auto& [left, right] :
         {std::pair<int64_t, int64_t>{0, 0}, {1, 3}, {7, 0}, {31, 15}, {100, 90}})
      for (const bool causal : {false, true}) {
        const auto [C, H] = kWidths[turn++ % std::size(kWidths)];
        expect_reference_in_all_types(
            {.B = 2,
             .T = T,
             .C = C,
             .H = H,
             .max_left = left,
             .max_right = right,
             .causal = causal});
      }
}

TEST_P(TalkOp, WindowsMayExceedTheMaximumAfterOffsetDropout) {
  for (const bool causal : {false, true})
    expect_reference_in_all_types(
        {.T = 140, .max_left = 15, .max_right = 7, .causal = causal, .largest = 2});
}

TEST_P(TalkOp, MatchesTheReferenceWithLengths) {
  TalkCall call = {.B = 3, .T = 70, .C = 12, .H = 3, .max_left = 9, .max_right = 5};
  for (const auto& lengths : {std::vector<int64_t>{70, 0, 13}, std::vector<int64_t>{64, 65, 1}}) {
    call.lengths = at::tensor(lengths);
    expect_reference_in_all_types(call);
  }
}

TEST_P(TalkOp, AnEmptyBatchOrSequenceGivesAnEmptyResult) {
  for (const auto& [B, T] : {std::pair<int64_t, int64_t>{0, 5}, {2, 0}, {0, 0}}) {
    const TalkCall call = {.B = B, .T = T};
    const auto in = call.inputs();
    const Differentiated got = differentiate(call.function(), in, at::zeros_like(in[0]));
    EXPECT_EQ(got.y.sizes(), in[0].sizes());
    EXPECT_EQ(got.grads[1].sizes(), in[1].sizes());
  }
}

TEST_P(TalkOp, TakesStridedInputs) {
  const TalkCall call = {.T = 9};
  const auto dense = call.inputs();
  std::vector<at::Tensor> strided;
  for (const at::Tensor& input : dense)
    strided.push_back(at::stack({input, input}, -1).select(-1, 1));
  EXPECT_TRUE(call.run(strided).equal(call.run(dense)));
}

TEST_P(TalkOp, ARowIsTheSameAloneAndInABatch) {
  const TalkCall call = {.B = 4, .T = 70, .max_left = 9, .max_right = 4};
  const auto in = call.inputs(at::kFloat);
  const at::Tensor all = call.run(in);
  for (int64_t b = 0; b < 4; ++b) {
    std::vector<at::Tensor> row;
    for (const at::Tensor& input : in)
      row.push_back(input.narrow(0, b, 1));
    EXPECT_TRUE(call.run(row).equal(all.narrow(0, b, 1)));
  }
}

TEST_P(TalkOp, PaddingChangesNothingWhateverItHolds) {
  TalkCall call = {.B = 1, .T = 40, .max_left = 9, .max_right = 12};
  const auto in = call.inputs(at::kFloat);
  const at::Tensor grad = at::randn_like(in[0]);
  const Differentiated want = differentiate(call.function(), in, grad);
  const auto pad = [](const at::Tensor& t) {
    return at::cat({t, at::full_like(t.narrow(1, 0, 30), NAN)}, 1);
  };
  TalkCall padded = call;
  padded.lengths = at::tensor({int64_t{40}});
  const Differentiated got =
      differentiate(padded.function(), {pad(in[0]), pad(in[1]), pad(in[2])}, pad(grad));
  EXPECT_TRUE(got.y.narrow(1, 0, 40).equal(want.y));
  EXPECT_TRUE(got.y.narrow(1, 40, 30).eq(0).all().item<bool>());
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(got.grads[i].narrow(1, 0, 40).equal(want.grads[i])) << i;
    EXPECT_TRUE(got.grads[i].narrow(1, 40, 30).eq(0).all().item<bool>()) << i;
  }
}

TEST_P(TalkOp, TheCausalFormSeesNoFuture) {
  const TalkCall call = {.B = 1, .T = 70, .max_left = 31, .causal = true};
  const auto in = call.inputs(at::kFloat);
  const at::Tensor whole = call.run(in);
  for (const int64_t T : {1, 30, 64, 69})
    EXPECT_TRUE(call.run({in[0].narrow(1, 0, T), in[1].narrow(1, 0, T), at::Tensor()})
                    .equal(whole.narrow(1, 0, T)))
        << T;
}

TEST_P(TalkOp, StepsOfAnySizeEqualTheFullForm) {
  for (const double largest : {1.0, 2.0})
    for (const int64_t max_left : {0, 1, 3, 31, 100})
      for (const int64_t chunk : {1, 2, 33, 70})
        for (const at::ScalarType type : testing::types()) {
          const TalkCall call = {
              .T = 70, .C = 10, .max_left = max_left, .causal = true, .largest = largest};
          SCOPED_TRACE(concat(call, " chunk ", chunk));
          auto in = call.inputs(type);
          if (c10::elementSize(type) == 2)
            in[1] = in[1].to(at::kFloat);
          const at::Tensor want = call.run(in);
          at::Tensor state = talk_initial_state(call.B, max_left, call.C, in[0].options(), largest);
          for (int64_t t = 0; t < call.T; t += chunk) {
            const int64_t count = std::min(chunk, call.T - t);
            const at::Tensor got = device::talk_step(
                in[0].narrow(1, t, count),
                state,
                at::tensor(t),
                in[1].narrow(1, t, count),
                max_left);
            EXPECT_LE(relative_error(got, want.narrow(1, t, count)), 2 * tolerance(type));
          }
        }
}

TEST_P(TalkOp, AStepTakesAStridedStateAndNoRows) {
  for (const int64_t rows : {2, 0}) {
    const TalkCall call = {.B = rows, .T = 4, .causal = true};
    const auto in = call.inputs();
    at::Tensor dense = talk_initial_state(rows, call.max_left, call.C, in[0].options());
    at::Tensor strided = dense.transpose(1, 2).contiguous().transpose(1, 2);
    const auto step = [&](at::Tensor& state, int64_t t) {
      return device::talk_step(
          in[0].narrow(1, t, 1), state, at::tensor(t), in[1].narrow(1, t, 1), call.max_left);
    };
    for (int64_t t = 0; t < 4; ++t)
      EXPECT_TRUE(step(strided, t).equal(step(dense, t)));
    EXPECT_TRUE(strided.equal(dense));
  }
}

TEST_P(TalkOp, TheErrorDoesNotGrowWithTheLengthOfTheSequence) {
  // A mean of 1 is what ruins prefix sums over the whole sequence. Heads that
  // share a tile, that have a part of a vector, and whole ones.
  for (const auto& [C, H] : {std::pair<int64_t, int64_t>{4, 4}, {4, 2}, {128, 2}}) {
    const TalkCall call = {.B = 1, .T = 20000, .C = C, .H = H, .max_left = 31, .max_right = 31};
    auto exact = call.inputs();
    exact[0] = (exact[0] + 1).to(at::kFloat).to(at::kDouble);
    const at::Tensor want = call.reference(exact);
    std::vector<at::Tensor> rounded;
    for (const at::Tensor& input : exact)
      rounded.push_back(input.to(at::kFloat));
    const at::Tensor got = call.run(rounded);
    for (const int64_t first : {int64_t{0}, int64_t{19000}})
      EXPECT_LE(relative_error(got.narrow(1, first, 1000), want.narrow(1, first, 1000)), 1e-6);
  }
}

TEST_P(TalkOp, ANanInAnOffsetShowsInTheResult) {
  const TalkCall call;
  auto in = call.inputs();
  in[1][1][2][0] = NAN;
  const at::Tensor bad = call.run(in).isnan();
  EXPECT_EQ(bad.sum().item<int64_t>(), 3);
  EXPECT_TRUE(bad[1][2].narrow(0, 0, 3).all().item<bool>());
}

TEST_P(TalkGradient, EqualsCentralDifferences) {
  for (const bool causal : {false, true}) {
    TalkCall call = {.T = 7, .max_left = 3, .max_right = 2, .causal = causal};
    testing::expect_numerical_gradients(call.function(), call.inputs());
    call.lengths = at::tensor({int64_t{7}, int64_t{3}});
    testing::expect_numerical_gradients(call.function(), call.inputs());
  }
}

TEST_P(TalkGradient, OfAnOffsetIsZeroAtWholeAndClampedPositions) {
  const TalkCall call = {.T = 9, .max_left = 4, .max_right = 4};
  auto in = call.inputs();
  for (const double offset : {0.0, 0.25, 0.5, 1.0}) {  // whole everywhere
    in[1].fill_(offset);
    in[2].fill_(offset);
    const auto got = differentiate(call.function(), in, at::ones_like(in[0])).grads;
    EXPECT_TRUE(got[1].eq(0).all().item<bool>());
    EXPECT_TRUE(got[2].eq(0).all().item<bool>());
  }
  in[1].fill_(0.9);  // 3.6 tokens: clamped for t < 4 on the left ...
  in[2].fill_(0.9);  // ... and for the last four on the right
  const auto got = differentiate(call.function(), in, at::ones_like(in[0])).grads;
  EXPECT_TRUE(got[1].narrow(1, 0, 4).eq(0).all().item<bool>());
  EXPECT_TRUE(got[1].narrow(1, 4, 5).ne(0).all().item<bool>());
  EXPECT_TRUE(got[2].narrow(1, 5, 4).eq(0).all().item<bool>());
  EXPECT_TRUE(got[2].narrow(1, 0, 5).ne(0).all().item<bool>());
}

TEST_P(TalkGradient, HasASecondDerivative) {
  const TalkCall call;
  testing::expect_numerical_second_gradients(call.function(), call.inputs());
}

TEST_P(TalkGradient, AStepRefusesInputsThatWantOne) {
  const TalkCall call = {.causal = true};
  auto in = call.inputs();
  in[0].requires_grad_(true);
  at::Tensor state = talk_initial_state(2, 3, 6, at::kDouble);
  EXPECT_TENSOR_ERROR(
      device::talk_step(in[0], state, at::tensor(int64_t{0}), in[1], 3),
      "[talk_step] has no gradient and must be called without grad mode (torch.no_grad()), but got "
      "an input that requires one");
}

TEST_P(TalkGradient, OnlyThoseThatAreAskedForAreComputed) {
  for (const int64_t C : {128, 12, 3}) {
    const TalkCall call = {
        .T = 70, .C = C, .H = C == 3 ? 3 : 2, .lengths = at::tensor({70, 40}, at::kLong)};
    SCOPED_TRACE(concat("C ", C));
    const auto inputs = call.inputs();
    testing::expect_only_wanted_gradients(
        call.function(), inputs, at::randn_like(inputs[0]), "seqconv::talk_backward");
  }
}

/// Positions that float32 does not hold: windows that end at the sequence's
/// ends and a fraction before them. Only these rows have windows of their own,
/// and few inputs are not 0, so that the sums are known.
TEST(TalkOp, PositionsBeyondTwoToThe24AreExact) {
  constexpr int64_t kFirst = int64_t{1} << 24, T = kFirst + 9;
  at::Tensor x = at::zeros({1, T, 1});
  for (const int64_t s : {int64_t{0}, int64_t{1}, int64_t{2}, T - 3, T - 2, T - 1})
    x[0][s][0] = static_cast<double>(s < 3 ? 1 << s : 1 << (T + 2 - s));
  const TalkOptions options = {.max_left = 2 * kFirst, .max_right = 2 * kFirst};
  at::Tensor left = at::zeros({1, T, 1}), right = at::zeros({1, T, 1});
  struct Window {
    int64_t t;
    double left, right;  ///< tokens
    double want;         ///< the sum of the window
  };
  // x = 1 2 4 0 ... 0 32 16 8
  const std::vector<Window> windows = {
      {kFirst + 1, 2.0 * kFirst, 0, 7},  // begins at the start, and before it
      {kFirst + 3, 2.0 * kFirst, 0, 7},  // which as a float is one further on
      {kFirst + 5, 1.5 * kFirst, 0, 7},  // or one less
      {kFirst + 7, 1.5, 0, 16 + 32},     // begins between two positions
      {T - 1, 1.5, 0, 8 + 16 + 0.5 * 32},
      {0, 0, 2.0 * kFirst, 7 + 56},
      {1, 0, 1.5 * kFirst, 6 + 56},
      {2, 0, 2.0 * kFirst, 4 + 56},
      {3, 1.25, 2.0 * kFirst, 4 + 0.25 * 2 + 56}};
  for (const Window& w : windows) {
    left[0][w.t][0] = w.left / static_cast<double>(options.max_left);
    right[0][w.t][0] = w.right / static_cast<double>(options.max_right);
  }
  const double scale = static_cast<double>(options.max_left + options.max_right + 1);
  const at::Tensor y = talk(x, left, right, options);
  const at::Tensor reference = talk_reference(x, left, right, options);
  for (const Window& w : windows) {
    EXPECT_NEAR(y[0][w.t][0].item<double>() * scale, w.want, 1e-4) << w.t;
    EXPECT_NEAR(reference[0][w.t][0].item<double>() * scale, w.want, 1e-4) << w.t;
  }
}

/// A stream's state may hold more inputs than float32 counts.
TEST(TalkOp, AStepReachesNoFurtherThanItsStreamIsLong) {
  constexpr int64_t kSlots = (int64_t{1} << 24) + 3;
  at::Tensor state = at::zeros({1, kSlots, 1});
  state[0][0][0] = 4;  // the first input
  const at::Tensor y =
      talk_step(at::ones({1, 1, 1}), state, at::tensor(kSlots), at::ones({1, 1, 1}), kSlots);
  EXPECT_NEAR(y.item<double>() * static_cast<double>(kSlots + 1), 5, 1e-5);
}

}  // namespace
}  // namespace seqconv::ops
