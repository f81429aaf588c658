#include "kernels/cuda_talk_support.h"

/// The TaLK kernels of the device, run thread by thread on the host, against
/// the CPU's.
namespace seqconv::internal::kernels::cuda::testing {
namespace {

TEST(CudaTalkOnHost, EqualsTheCpuOnAwkwardSizes) {
  constexpr std::pair<int64_t, int64_t> kHeads[] = {
      {1, 5},
      {3, 2},
      {4, 3},
      {8, 2},
      {60, 1},
      {64, 1},
      {128, 1},
      {1, 40},
      {2, 33},
      {16, 5},
      {6, 3},
      {100, 1},
      {32, 3}};
  size_t turn = 0;
  for (const int64_t T : {1, 2, 31, 64, 129, 151})
    for (const auto& [left, right] :
         {std::pair<int64_t, int64_t>{0, 0}, {1, 3}, {7, 0}, {31, 15}, {100, 90}})
      for (const bool causal : {false, true}) {
        TalkCase c = {.B = turn % 3 == 0 ? 2 : 1, .T = T};
        std::tie(c.R, c.H) = kHeads[turn++ % std::size(kHeads)];
        c.max_left = left;
        c.max_right = right;
        c.causal = causal;
        expect_talk_in_all_types(c);
      }
}

TEST(CudaTalkOnHost, WindowsMayExceedTheMaximumAfterOffsetDropout) {
  // Beyond what a block keeps prefix sums of, and beyond the next tile.
  for (const bool causal : {false, true})
    for (const double largest : {2.0, 9.0})
      expect_talk_in_all_types(
          {.T = 200, .R = 6, .max_left = 15, .max_right = 7, .causal = causal, .largest = largest});
}

/// Narrow heads, whose windows fill a block's memory, and wide windows.
TEST(CudaTalkOnHost, EqualsTheCpuInTheMemoryOfCapability75) {
  for (const auto& [R, H] : {std::pair<int64_t, int64_t>{1, 40}, {2, 33}, {4, 9}, {64, 1}})
    for (const int64_t left : {3, 100})
      expect_talk_in_all_types(
          {.B = 1, .T = 151, .H = H, .R = R, .max_left = left, .max_right = 7, .device = kTuring});
}

TEST(CudaTalkOnHost, EqualsTheCpuWithLengths) {
  for (const std::vector<int64_t>& lengths : {std::vector<int64_t>{150, 0, 13}, {64, 65, 1}})
    expect_talk_in_all_types(
        {.B = 3, .T = 150, .H = 3, .R = 4, .max_left = 9, .max_right = 5, .lengths = lengths});
}

TEST(CudaTalkOnHost, EmptyBatchesAndSequencesAreNoWork) {
  for (const auto& [B, T] : {std::pair<int64_t, int64_t>{0, 5}, {2, 0}, {0, 0}})
    expect_talk_in_all_types({.B = B, .T = T});
}

TEST(CudaTalkOnHost, PaddingIsNeverLookedAt) {
  const TalkCase c = {
      .B = 1, .T = 70, .H = 2, .R = 4, .max_left = 9, .max_right = 12, .lengths = {40}};
  TalkValues values(c);
  const auto want = run_on_host<float, float>(c, values, /*backwards=*/false);
  for (auto* const list : {&values.x, &values.left, &values.right, &values.grad_y})
    for (size_t i = list->size() / 70 * 40; i < list->size(); ++i)
      (*list)[i] = NAN;
  const auto got = run_on_host<float, float>(c, values, /*backwards=*/false);
  EXPECT_TRUE(same_bits(got.y, want.y));
  EXPECT_TRUE(same_bits(got.grad_x, want.grad_x));
  EXPECT_TRUE(same_bits(got.grad_left, want.grad_left));
  EXPECT_TRUE(same_bits(got.grad_right, want.grad_right));
}

TEST(CudaTalkOnHost, ANanInAnOffsetShowsInItsOutputs) {
  const TalkCase c = {.B = 1, .T = 9, .H = 2, .R = 3};
  TalkValues values(c);
  values.left[4 * 2] = NAN;
  const auto got = run_on_host<float, float>(c, values, /*backwards=*/false);
  for (int64_t i = 0; i < c.T * c.C(); ++i)
    EXPECT_EQ(std::isnan(got.y[static_cast<size_t>(i)]), i / c.C() == 4 && i % c.C() < 3) << i;
}

TEST(CudaTalkOnHost, TheErrorDoesNotGrowWithTheLengthOfTheSequence) {
  const TalkCase c = {.B = 1, .T = 20000, .H = 1, .R = 2, .max_left = 31, .max_right = 31};
  TalkValues values(c);
  for (double& value : values.x)
    value = narrowed<float>({value + 1})[0];
  const auto want = reference(c, values);
  const auto got = run_on_host<float, float>(c, values, /*backwards=*/false);
  EXPECT_LE(error_of(got.y, want.y), 1e-6);
}

TEST(CudaTalkOnHost, WindowsOfNegativeOffsetsCountTheirRowsNegatively) {
  for (const int64_t R : {1, 3, 4, 16, 64})
    for (const double largest : {-0.5, -1.0, -3.0})
      expect_talk_in_all_types(
          {.B = 1, .T = 150, .H = 2, .R = R, .max_left = 20, .max_right = 9, .largest = largest});
}

/// The sequence in chunks through the step form.
template <class S>
std::vector<S> stepped(const TalkCase& c, const TalkValues& values, int64_t chunk) {
  HostLauncher launcher;
  const auto x = narrowed<S>(values.x);
  const auto left = narrowed<float>(values.left);
  const int64_t C = c.C();
  const auto slots = static_cast<int64_t>(std::ceil(static_cast<double>(c.max_left) * c.largest));
  std::vector<S> y = garbage<S>(c.B * c.T * C);
  std::vector<S> state(static_cast<size_t>(c.B * slots * C));
  for (int64_t t = 0; t < c.T; t += chunk) {
    const int64_t count = std::min(chunk, c.T - t);
    std::vector<S> in, out = garbage<S>(c.B * count * C);
    std::vector<float> offsets;
    for (int64_t b = 0; b < c.B; ++b) {
      const auto at = x.begin() + (b * c.T + t) * C;
      in.insert(in.end(), at, at + count * C);
      const auto o = left.begin() + (b * c.T + t) * c.H;
      offsets.insert(offsets.end(), o, o + count * c.H);
    }
    TalkShape shape = c.shape();
    shape.steps = count;
    run(launcher,
        TalkStep<S>{
            .shape = shape,
            .offsets = {offsets.data(), nullptr, Storage::kFloat},
            .x = in.data(),
            .state = state.data(),
            .slots = slots,
            .position = &t,
            .y = out.data()});
    for (int64_t b = 0; b < c.B; ++b)
      std::copy_n(out.begin() + b * count * C, count * C, y.begin() + (b * c.T + t) * C);
  }
  return y;
}

TEST(CudaTalkOnHost, StepsOfAnySizeEqualTheFullForm) {
  for (const double largest : {1.0, 2.0})
    for (const int64_t max_left : {0, 1, 3, 31, 100})
      for (const int64_t chunk : {1, 2, 33, 70}) {
        const TalkCase c = {
            .T = 70, .R = 5, .max_left = max_left, .causal = true, .largest = largest};
        SCOPED_TRACE(::testing::PrintToString(c));
        const TalkValues values(c);
        const auto want = reference(c, values);
        EXPECT_LE(error_of(stepped<float>(c, values, chunk), want.y), bound<float>());
        EXPECT_LE(error_of(stepped<BFloat16>(c, values, chunk), want.y), bound<BFloat16>());
      }
}

}  // namespace
}  // namespace seqconv::internal::kernels::cuda::testing
