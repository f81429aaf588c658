#include "kernels/cuda_conv_support.h"

/// The convolution kernels of the device, run thread by thread on the host,
/// against the CPU's.
namespace seqconv::internal::kernels::cuda::testing {
namespace {

class CudaConvOnHost : public ::testing::TestWithParam<LogitsOf> {};

INSTANTIATE_TEST_SUITE_P(
    Both,
    CudaConvOnHost,
    ::testing::Values(LogitsOf::kHead, LogitsOf::kPosition),
    [](const auto& info) { return info.param == LogitsOf::kHead ? "L" : "D"; });

/// Channels of a head and heads: one, odd, over and under a chunk.
constexpr std::pair<int64_t, int64_t> kHeads[] = {
    {1, 5}, {3, 2}, {4, 3}, {8, 2}, {60, 1}, {64, 1}, {128, 1}, {1, 40}};

TEST_P(CudaConvOnHost, EqualsTheCpuOnAwkwardSizes) {
  size_t turn = 0;
  for (const int64_t K : {1, 2, 3, 4, 7, 15, 31, 63})
    for (const int64_t T : {1, 2, 31, 64, 129}) {
      ConvCase c = {.kind = GetParam(), .T = T, .K = K};
      c.B = turn % 3 == 0 ? 2 : 1;
      std::tie(c.R, c.H) = kHeads[turn++ % std::size(kHeads)];
      c.padding_left = turn % 3 == 0 ? 0 : turn % 3 == 1 ? K - 1 : K / 2;
      // The others have float's kernels but for loads and stores.
      turn % 2 == 0 ? expect_reference<float, BFloat16>(c) : expect_reference<float, Float16>(c);
    }
}

TEST_P(CudaConvOnHost, EqualsTheCpuWhereKernelsAreLongerThanSequences) {
  size_t turn = 0;
  for (const auto& [K, T] :
       {std::pair<int64_t, int64_t>{127, 151}, {255, 151}, {255, 256}, {300, 40}})
    // Both types come for every head and every kernel.
    for (const int64_t R : {1, 3, 60}) {
      const ConvCase c = {
          .kind = GetParam(),
          .B = 1,
          .T = T,
          .H = R < 60 ? 2 : 1,
          .R = R,
          .K = K,
          .padding_left = R == 3 ? K / 2 : K - 1};
      turn++ % 2 == 0 ? expect_reference<float>(c) : expect_reference<BFloat16>(c);
    }
}

/// Sizes that tensor cores take: heads of a part of a fragment, of whole ones,
/// of more than a chunk; bands of 2 .. 17 fragments; both heights of tiles.
/// Long kernels, which take longest, have one head; types take turns, so that
/// either comes for every K, every T and every R.
TEST_P(CudaConvOnHost, EqualsTheCpuOnTensorCores) {
  constexpr int64_t kChannels[] = {8, 16, 24, 56, 64, 72, 128, 136};
  size_t turn = 0;
  for (const int64_t K : {15, 17, 18, 31, 33, 63, 127, 255})
    for (const int64_t T : {1, 16, 63, 65, 151}) {
      ConvCase c = {.kind = GetParam(), .B = 1, .T = T, .K = K};
      c.H = K < 100 ? 2 : 1;
      const bool brain = (turn + turn / 8) % 2 == 0;
      c.R = kChannels[turn++ % std::size(kChannels)];
      c.padding_left = turn % 3 == 0 ? 0 : turn % 3 == 1 ? K - 1 : K / 2;
      if (turn % 2 == 0)
        c.lengths = {(T + 1) / 2};
      EXPECT_GT(plan_band({c.shape(), /*backward=*/true, /*per_row=*/true, 1, 2}).rows, 0);
      expect_in_16_bits(c, brain);
    }
}

/// Tensor cores that know float16 alone, and less shared memory.
TEST_P(CudaConvOnHost, EqualsTheCpuAsCapability75RunsIt) {
  for (const int64_t K : {3, 31, 127}) {
    const ConvCase c = {
        .kind = GetParam(),
        .B = 1,
        .T = 70,
        .H = 1,
        .R = 64,
        .K = K,
        .padding_left = K / 2,
        .device = kTuring};
    expect_in_all_types(c);
    const auto uses_bands = [&]<class S>(S) {
      ConvSetup setup;
      setup.shape = c.shape();
      setup.logits_of = c.kind;
      return conv_task<S>(setup, /*backward=*/true, c.device, {}, nullptr).plan.uses_bands;
    };
    // The bands of 127 taps need more than 64 KB.
    EXPECT_EQ(uses_bands(Float16{}), K == 31);
    EXPECT_FALSE(uses_bands(BFloat16{}));
  }
}

TEST_P(CudaConvOnHost, EqualsTheCpuWithLengths) {
  for (const std::vector<int64_t>& lengths : {std::vector<int64_t>{70, 0, 13}, {64, 65, 1}})
    for (const int64_t K : {3, 31})
      for (const bool renormalize : {false, true})
        expect_in_all_types(
            {.kind = GetParam(),
             .B = 3,
             .T = 70,
             .H = 2,
             .R = 12,
             .K = K,
             .padding_left = K / 2,
             .renormalize = renormalize,
             .lengths = lengths});
}

TEST_P(CudaConvOnHost, EqualsTheCpuWithAndWithoutASoftmax) {
  for (const bool softmax : {false, true})
    for (const int64_t K : {3, 17})
      for (const bool seeded : {false, true}) {
        ConvCase c = {
            .kind = GetParam(),
            .T = 40,
            .H = 3,
            .R = 8,
            .K = K,
            .padding_left = K - 1,
            .softmax = softmax,
            .p = 0.3,
            .masked = !seeded,
            .bias = seeded};
        if (seeded)
          c.seed = -77;
        expect_in_all_types(c);
      }
}

/// Taps that two halves of float16 would hold badly or not at all.
TEST_P(CudaConvOnHost, TinyAndHugeTapsAreExactInFloat16) {
  ConvCase c = {.kind = GetParam(), .B = 1, .T = 40, .R = 16, .K = 31};
  c.padding_left = 30;
  c.bias = false;
  // The taps of sigmoids and of hyperbolic tangents.
  c.softmax = false;
  c.wide_logits = true;
  for (const bool sigmoid : {true, false}) {
    ConvValues values(c);
    for (double& w : values.logits)
      w = sigmoid ? 1 / (1 + std::exp(14 - w / 8)) : std::tanh(w / 65536);
    values.logits = widened(narrowed<float>(values.logits));
    for (size_t i = 0; i < values.x.size(); ++i) {
      values.x[i] *= sigmoid ? 4096 : 64;
      values.grad_y[i] *= sigmoid ? 256 : 4;
    }
    expect_reference<Float16>(c, values);
  }
  c.wide_logits = false;
  c.softmax = true;
  c.masked = true;
  c.p = 1 - 1.0 / (1 << 20);
  ConvValues values(c);
  for (double* const v : {values.x.data(), values.grad_y.data()})
    for (size_t i = 0; i < values.x.size(); ++i)
      v[i] /= 1 << 14;
  for (size_t i = 0; i < values.mask.size(); ++i)
    values.mask[i] = i % 7 == 0;
  expect_reference<Float16>(c, values);
}

TEST_P(CudaConvOnHost, RenormalisedEdgesWithDropConnect) {
  for (const int64_t K : {2, 9, 40})
    expect_in_all_types(
        {.kind = GetParam(),
         .T = 33,
         .H = 2,
         .R = 16,
         .K = K,
         .padding_left = K / 2,
         .renormalize = true,
         .p = 0.25,
         .seed = 5,
         .lengths = {33, 7}});
}

TEST_P(CudaConvOnHost, TakesFloatLogitsBeside16Bits) {
  for (const int64_t K : {3, 31}) {
    ConvCase c = {.kind = GetParam(), .T = 70, .R = 16, .K = K};
    c.padding_left = K / 2;
    c.wide_logits = true;
    expect_reference<BFloat16, Float16>(c);
  }
}

TEST_P(CudaConvOnHost, LogitsOfMinusInfinityHaveNoTaps) {
  for (const int64_t K : {2, 3, 5, 17, 33})
    for (const int64_t padding : {K - 1, K / 2})
      for (const bool renormalize : {false, true}) {
        const ConvCase c = {
            .kind = GetParam(),
            .B = 1,
            .T = 70,
            .H = 6,
            .R = 8,
            .K = K,
            .padding_left = padding,
            .renormalize = renormalize,
            .infinities = true};
        expect_in_all_types(c);
      }
}

/// Rows that have no softmax: nothing but minus infinity, a plus infinity or
/// what is not a number. The step has them too.
TEST_P(CudaConvOnHost, RowsWithoutASoftmaxAreNotNumbersAsOnTheCpu) {
  for (const int64_t K : {1, 3, 31})
    for (const double spoilt : {-HUGE_VAL, HUGE_VAL, std::nan("")}) {
      const ConvCase c = {
          .kind = GetParam(), .T = 70, .H = 3, .R = 8, .K = K, .padding_left = K - 1};
      ConvValues values(c);
      const int64_t rows = c.logit_count() / K;
      for (int64_t n = rows / 4; n < rows; n += rows / 2)
        for (int64_t j = 0; j < K; ++j)
          if (spoilt == -HUGE_VAL || j == n % K)
            values.logits[static_cast<size_t>(n * K + j)] = spoilt;
      expect_reference<float, BFloat16, Float16>(c, values);
    }
}

/// Devices that give a block 99 KB: kernels for which tensor cores want more
/// take FMA, and those too long for any tile are refused.
TEST_P(CudaConvOnHost, SmallDevicesTakeLongKernelsOrSaySo) {
  for (const int64_t K : {255, 415}) {
    const ConvCase c = {
        .kind = GetParam(),
        .B = 1,
        .T = 40,
        .H = 1,
        .R = 64,
        .K = K,
        .padding_left = K / 2,
        .device = {.shared = kMediumShared}};
    expect_in_all_types(c);
  }
  const ConvCase c = {
      .kind = GetParam(), .B = 1, .T = 4, .K = 20000, .device = {.shared = kMediumShared}};
  try {
    run_on_host<float>(c, ConvValues(c), /*backwards=*/false);
    FAIL() << "K = 20000 was taken";
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.what(),
        "[cuda] the kernel must fit into the shared memory of a block (101376 bytes on this "
        "device), but got K = 20000 for heads of 4 channels");
  }
}

/// So many tiles that a block of lightconv takes several, the last one fewer,
/// and so many positions that sums over them need three stages. A block of
/// dynamicconv has one tile always.
TEST_P(CudaConvOnHost, SeveralTilesOfABlockAndManyBlocksGiveTheSameSums) {
  const bool light = GetParam() == LogitsOf::kHead;
  const ConvCase c = {
      .kind = GetParam(),
      .B = light ? 8193 : 129,
      .T = light ? 1 : 64,
      .H = 1,
      .R = 1,
      .K = 3,
      .padding_left = 1};
  const ConvPlan plan = plan_fma({c.shape(), /*backward=*/true, /*per_row=*/!light, /*vector=*/1});
  EXPECT_EQ(plan.tiles_per_block, light ? 4 : 1);
  EXPECT_EQ(c.B * plan.tiles % 4, 1);
  EXPECT_GT(sum_outputs(plan.units), 1);
  EXPECT_GT(sum_outputs(sum_outputs(c.B * c.T)), 1);
  expect_reference<float>(c);
}

TEST_P(CudaConvOnHost, EmptyBatchesAndSequencesGiveZeroGradients) {
  for (const auto& [B, T] : {std::pair<int64_t, int64_t>{0, 5}, {2, 0}, {0, 0}})
    expect_in_all_types({.kind = GetParam(), .B = B, .T = T});
}

TEST_P(CudaConvOnHost, PaddingIsNeverLookedAt) {
  ConvCase c = {
      .kind = GetParam(),
      .B = 1,
      .T = 70,
      .H = 2,
      .R = 16,
      .K = 31,
      .padding_left = 15,
      .lengths = {40}};
  ConvValues values(c);
  const auto spoil = [&](std::vector<double>& list) {
    for (size_t i = list.size() / 70 * 40; i < list.size(); ++i)
      list[i] = NAN;
  };
  const auto want = run_on_host<BFloat16>(c, values, /*backwards=*/false);
  spoil(values.x);
  spoil(values.grad_y);
  if (GetParam() == LogitsOf::kPosition)
    spoil(values.logits);
  const auto got = run_on_host<BFloat16>(c, values, /*backwards=*/false);
  EXPECT_TRUE(same_bits(got.y, want.y));
  EXPECT_TRUE(same_bits(got.grad_x, want.grad_x));
  EXPECT_TRUE(same_bits(got.grad_logits, want.grad_logits));
  EXPECT_TRUE(same_bits(got.grad_bias, want.grad_bias));
}

TEST_P(CudaConvOnHost, LengthsBeyondTheSequenceAreClamped) {
  ConvCase c = {.kind = GetParam(), .B = 2, .T = 9, .lengths = {9, 0}};
  const ConvValues values(c);
  const auto want = run_on_host<float>(c, values, /*backwards=*/false);
  c.lengths = {1000, -3};
  const auto got = run_on_host<float>(c, values, /*backwards=*/false);
  EXPECT_TRUE(same_bits(got.y, want.y));
  EXPECT_TRUE(same_bits(got.grad_x, want.grad_x));
}

/// The sequence in chunks through the step form.
template <class S>
std::vector<S> stepped(const ConvCase& c, const ConvValues& values, int64_t chunk) {
  HostLauncher launcher;
  const auto x = narrowed<S>(values.x), logits = narrowed<S>(values.logits);
  const auto bias = narrowed<float>(values.bias);
  const int64_t C = c.C(), row = c.H * c.K;
  std::vector<S> y = garbage<S>(c.B * c.T * C);
  std::vector<S> state(static_cast<size_t>(c.B * (c.K - 1) * C));
  for (int64_t t = 0; t < c.T; t += chunk) {
    const int64_t count = std::min(chunk, c.T - t);
    std::vector<S> in, now, out = garbage<S>(c.B * count * C);
    for (int64_t b = 0; b < c.B; ++b) {
      const auto at = x.begin() + (b * c.T + t) * C;
      in.insert(in.end(), at, at + count * C);
      const auto k = logits.begin() + (b * c.T + t) * row;
      if (c.kind == LogitsOf::kPosition)
        now.insert(now.end(), k, k + count * row);
    }
    if (c.kind == LogitsOf::kHead)
      now = logits;
    const int64_t seed = 0;
    ConvSetup setup = setup_of(c, values, seed);
    setup.shape.steps = count;
    setup.logits = {now.data(), StorageOf<S>::kValue};
    const ConvStep<S> step = {
        .setup = setup,
        .x = in.data(),
        .bias = bias.data(),
        .state = state.data(),
        .position = &t,
        .y = out.data()};
    run(launcher, step);
    for (int64_t b = 0; b < c.B; ++b)
      std::copy_n(out.begin() + b * count * C, count * C, y.begin() + (b * c.T + t) * C);
  }
  return y;
}

TEST_P(CudaConvOnHost, StepsOfAnySizeEqualTheFullForm) {
  for (const int64_t K : {1, 2, 3, 4, 7, 64})
    for (const int64_t chunk : {1, 2, 33, 70})
      for (const bool renormalize : {false, true}) {
        const ConvCase c = {
            .kind = GetParam(),
            .B = 3,
            .T = 70,
            .H = 2,
            .R = K == 4 ? 70 : 5,
            .K = K,
            .padding_left = K - 1,
            .renormalize = renormalize};
        SCOPED_TRACE(::testing::PrintToString(c));
        const ConvValues values(c);
        const ConvReference want(c, values);
        EXPECT_LE(error_of(stepped<float>(c, values, chunk), want.y), bound<float>());
        EXPECT_LE(error_of(stepped<BFloat16>(c, values, chunk), want.y), bound<BFloat16>());
      }
}

TEST_P(CudaConvOnHost, StepsTakeLogitsOfMinusInfinity) {
  for (const int64_t K : {3, 17})
    for (const bool whole_row : {false, true}) {
      const ConvCase c = {
          .kind = GetParam(), .T = 40, .H = 6, .K = K, .padding_left = K - 1, .infinities = true};
      ConvValues values(c);
      if (whole_row)
        std::fill_n(values.logits.begin() + K, K, -HUGE_VAL);
      const ConvReference want(c, values);
      EXPECT_LE(error_of(stepped<float>(c, values, 7), want.y), bound<float>());
    }
}

}  // namespace
}  // namespace seqconv::internal::kernels::cuda::testing
