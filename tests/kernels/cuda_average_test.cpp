#include <ostream>

#include "kernels/cuda/average/average.h"
#include "kernels/cuda_support.h"
#include "kernels/parallel.h"

/// The kernels of the cumulative average of the device, run thread by thread on
/// the host, against the CPU's.
namespace seqconv::internal::kernels::cuda::testing {
namespace {

struct AverageCase {
  int64_t B = 2, T = 5, C = 6;
  std::vector<int64_t> lengths;

  int64_t count() const { return B * T * C; }
  AverageShape shape() const { return {B, T, C}; }
  const int64_t* valid() const { return lengths.empty() ? nullptr : lengths.data(); }
  std::vector<double> input() const {
    return Numbers(static_cast<unsigned>(T * 31 + C)).normal(count());
  }
};

std::ostream& operator<<(std::ostream& out, const AverageCase& c) {
  return out << "B " << c.B << " T " << c.T << " C " << c.C
             << (c.lengths.empty() ? "" : " lengths");
}

constexpr AverageOrder kOrders[] = {AverageOrder::kForward, AverageOrder::kBackward};

struct HostRun {
  bool backwards = false;  ///< order of threads and blocks
  size_t shift = 0;        ///< elements off an aligned address
};

template <class S>
std::vector<S> run_on_host(
    const AverageCase& c, AverageOrder order, const std::vector<double>& x, HostRun how = {}) {
  HostLauncher launcher(how.backwards);
  Shifted<S> in(narrowed<S>(x), how.shift);
  Shifted<S> out(garbage<S>(c.count()), how.shift);
  auto workspace = garbage<double>(cumulative_average_workspace<S>(c.shape()));
  const CumulativeAverage<S> args = {
      order, c.shape(), c.valid(), in.data(), out.data(), workspace.data()};
  run(launcher, args);
  return out.values();
}

std::vector<double> reference(
    const AverageCase& c, AverageOrder order, const std::vector<double>& x) {
  std::vector<double> y(x.size());
  const kernels::CumulativeAverage<double> args = {c.shape(), c.valid(), x.data(), y.data()};
  if (order == AverageOrder::kForward)
    kernels::cumulative_average(args, kernels::testing::serial);
  else
    kernels::cumulative_average_backward(args, kernels::testing::serial);
  return y;
}

template <class S>
void expect_reference(const AverageCase& c) {
  const std::vector<double> x = c.input();
  for (const AverageOrder order : kOrders) {
    SCOPED_TRACE(
        ::testing::Message() << c << " bytes " << sizeof(S) << " backward "
                             << (order == AverageOrder::kBackward));
    const auto got = run_on_host<S>(c, order, x);
    EXPECT_LE(error_of(got, reference(c, order, x)), bound<S>());
    EXPECT_TRUE(same_bits(got, run_on_host<S>(c, order, x, {true, 0}))) << "in another order";
    EXPECT_TRUE(same_bits(got, run_on_host<S>(c, order, x, {false, 1}))) << "at another address";
  }
}

void expect_average_in_all_types(const AverageCase& c) {
  expect_reference<float>(c);
  expect_reference<BFloat16>(c);
  expect_reference<Float16>(c);
}

/// Sequence b of x, its first T positions.
template <class A>
std::vector<A> part_of(const AverageCase& c, const std::vector<A>& x, int64_t b, int64_t T) {
  const auto begin = x.begin() + b * c.T * c.C;
  return {begin, begin + T * c.C};
}

/// Ends of chunks, and more chunks than are carried at once; parts of a strip,
/// whole ones and several. Positions and channels do not meet
/// in any condition: two of these for each of those.
TEST(CudaAverageOnHost, EqualsTheCpuOnAwkwardSizes) {
  constexpr int64_t kChannels[] = {32, 65, 258, 1, 7};
  size_t turn = 0;
  for (const int64_t T : {1, 2, 16, 17, 63, 65, 128, 129, 300, 1200})
    for (const int64_t B : {3, 1})
      expect_average_in_all_types({B, T, kChannels[turn++ % std::size(kChannels)], {}});
}

TEST(CudaAverageOnHost, EqualsTheCpuWhereEverySequenceIsOnePart) {
  // Of three chunks: what a block hands on from one to the next.
  const AverageCase single = {kEnoughAverageBlocks, 257, 1, {}};
  EXPECT_EQ(cumulative_average_workspace<float>(single.shape()), 0);
  expect_reference<float>(single);
  const AverageCase vectors = {kEnoughAverageBlocks, 129, 4, {}};
  EXPECT_EQ(cumulative_average_workspace<BFloat16>(vectors.shape()), 0);
  expect_reference<BFloat16>(vectors);
}

TEST(CudaAverageOnHost, EqualsTheCpuWithLengths) {
  for (const std::vector<int64_t>& lengths : {std::vector<int64_t>{400, 0, 13}, {128, 129, 1}})
    expect_average_in_all_types({3, 400, 12, lengths});
}

TEST(CudaAverageOnHost, LengthsOutOfRangeAreClamped) {
  const AverageCase wild = {2, 150, 8, {1000, -5}}, tame = {2, 150, 8, {150, 0}};
  for (const AverageOrder order : kOrders)
    EXPECT_TRUE(same_bits(
        run_on_host<float>(wild, order, wild.input()),
        run_on_host<float>(tame, order, wild.input())));
}

TEST(CudaAverageOnHost, EmptyBatchesAndSequencesAreNoWork) {
  for (const auto& [B, T] : {std::pair<int64_t, int64_t>{0, 5}, {2, 0}, {0, 0}})
    expect_average_in_all_types({B, T, 6, {}});
}

TEST(CudaAverageOnHost, ASequenceHasTheSameBitsAloneAndInABatch) {
  // Alone it is split, in the batch it is not.
  const AverageCase all = {kEnoughAverageBlocks, 257, 8, {}};
  const AverageCase one = {1, 257, 8, {}};
  ASSERT_EQ(cumulative_average_workspace<float>(all.shape()), 0);
  ASSERT_GT(cumulative_average_workspace<float>(one.shape()), 0);
  const std::vector<double> x = all.input();
  for (const AverageOrder order : kOrders) {
    const auto batch = run_on_host<float>(all, order, x);
    for (const int64_t b : {0, 17, 255})
      EXPECT_TRUE(same_bits(
          run_on_host<float>(one, order, part_of(all, x, b, 257)), part_of(all, batch, b, 257)));
  }
}

TEST(CudaAverageOnHost, SeesNoFuture) {
  const AverageCase whole = {1, 700, 5, {}};
  const std::vector<double> x = whole.input();
  const auto y = run_on_host<float>(whole, AverageOrder::kForward, x);
  for (const int64_t T : {1, 127, 128, 130, 699})
    EXPECT_TRUE(same_bits(
        run_on_host<float>({1, T, 5, {}}, AverageOrder::kForward, part_of(whole, x, 0, T)),
        part_of(whole, y, 0, T)));
}

TEST(CudaAverageOnHost, PaddingChangesNothingWhateverItHolds) {
  const AverageCase padded = {1, 500, 5, {140}}, plain = {1, 140, 5, {}};
  std::vector<double> x = padded.input();
  std::fill(x.begin() + 140 * 5, x.end(), NAN);
  for (const AverageOrder order : kOrders) {
    const auto got = run_on_host<float>(padded, order, x);
    EXPECT_TRUE(same_bits(
        part_of(padded, got, 0, 140),
        run_on_host<float>(plain, order, part_of(padded, x, 0, 140))));
    for (size_t i = 140 * 5; i < got.size(); ++i)
      EXPECT_EQ(got[i], 0) << i;
  }
}

TEST(CudaAverageOnHost, ANotANumberReachesItsOwnChannelAndOneSideOnly) {
  const AverageCase c = {1, 300, 8, {}};
  std::vector<double> x = c.input();
  x[150 * 8 + 3] = NAN;
  for (const AverageOrder order : kOrders) {
    const auto y = run_on_host<float>(c, order, x);
    for (int64_t i = 0; i < c.count(); ++i) {
      const int64_t t = i / c.C;
      const bool behind = order == AverageOrder::kForward ? t >= 150 : t <= 150;
      EXPECT_EQ(std::isnan(y[static_cast<size_t>(i)]), behind && i % c.C == 3) << i;
    }
  }
}

TEST(CudaAverageOnHost, TheErrorDoesNotGrowWithTheLengthOfTheSequence) {
  // So long that a block of a split sequence takes two chunks, the last one
  // one.
  const AverageCase c = {1, 1025 * kAverageChunk - 20, 2, {}};
  const AveragePlan plan = plan_average(c.shape(), sizeof(float), 1);
  EXPECT_EQ(plan.chunks_per_block, 2);
  EXPECT_EQ(plan.parts, 513);
  std::vector<double> x = c.input();
  for (double& value : x)
    value += 1;
  x = widened(narrowed<float>(x));
  for (const AverageOrder order : kOrders)
    EXPECT_LE(error_of(run_on_host<float>(c, order, x), reference(c, order, x)), 1e-7);
}

/// The sequence in chunks through the step form.
template <class S>
std::vector<double> stepped(const AverageCase& c, const std::vector<double>& x, int64_t chunk) {
  HostLauncher launcher;
  std::vector<double> y(x.size());
  std::vector<double> sums(static_cast<size_t>(c.B * c.C));
  for (int64_t t = 0; t < c.T; t += chunk) {
    const int64_t count = std::min(chunk, c.T - t);
    std::vector<double> chunk;
    for (int64_t b = 0; b < c.B; ++b) {
      const auto from = x.begin() + (b * c.T + t) * c.C;
      chunk.insert(chunk.end(), from, from + count * c.C);
    }
    const auto in = narrowed<S>(chunk);
    auto out = garbage<S>(c.B * count * c.C);
    run(launcher,
        CumulativeAverageStep<S>{{c.B, count, c.C}, &t, in.data(), sums.data(), out.data()});
    const auto wide = widened(out);
    for (int64_t b = 0; b < c.B; ++b)
      std::copy_n(wide.begin() + b * count * c.C, count * c.C, y.begin() + (b * c.T + t) * c.C);
  }
  return y;
}

TEST(CudaAverageOnHost, StepsOfAnySizeEqualTheFullForm) {
  const AverageCase c = {3, 70, 50, {}};
  const std::vector<double> x = c.input();
  const auto want = reference(c, AverageOrder::kForward, x);
  for (const int64_t chunk : {1, 2, 33, 70}) {
    EXPECT_LE(error_of(stepped<float>(c, x, chunk), want), bound<float>());
    EXPECT_LE(error_of(stepped<Float16>(c, x, chunk), want), bound<Float16>());
    EXPECT_LE(error_of(stepped<BFloat16>(c, x, chunk), want), bound<BFloat16>());
  }
}

TEST(CudaAveragePlan, CoversEveryPositionOnceAndFitsEveryLaunch) {
  for (const int64_t B : {1, 2, 31, 256, 100000})
    for (const int64_t T : {1, 128, 129, 512, 4096, 1000000})
      for (const int64_t C : {1, 31, 512, 1024, 20000})
        for (const int bytes : {2, 4})
          for (const int vector : {1, kAverageBytes / bytes}) {
            if (B * T > 500000000)
              continue;
            SCOPED_TRACE(
                ::testing::Message() << "B " << B << " T " << T << " C " << C << " bytes " << bytes
                                     << " vector " << vector);
            const AveragePlan plan = plan_average({B, T, C}, bytes, vector);
            EXPECT_GE(plan.strips * kThreads * vector, C);
            EXPECT_LT((plan.strips - 1) * kThreads * vector, C);
            EXPECT_GE(plan.chunks * kAverageChunk, T);
            EXPECT_LT((plan.chunks - 1) * kAverageChunk, T);
            EXPECT_GE(plan.parts * plan.chunks_per_block, plan.chunks);
            EXPECT_LT((plan.parts - 1) * plan.chunks_per_block, plan.chunks);
            EXPECT_EQ(plan.blocks, B * plan.parts * plan.strips);
            EXPECT_LT(plan.blocks, int64_t{1} << 31);
            EXPECT_LT(B * plan.kept() * plan.strips, int64_t{1} << 31);
            EXPECT_EQ(plan.kept(), plan_average({B, T, C}, bytes, 1).kept())
                << "the workspace depends on alignment";
          }
}

TEST(CudaAveragePlan, FewChannelsAreSplitAlongTime) {
  // One sequence of a translation model; a batch that needs no splitting.
  const AveragePlan one = plan_average({1, 4096, 1024}, 2, 2);
  EXPECT_EQ(one.blocks, 4 * 32);
  EXPECT_EQ(one.kept(), 31);
  const AveragePlan many = plan_average({64, 512, 1024}, 2, 2);
  EXPECT_EQ(many.parts, 1);
  EXPECT_EQ(many.kept(), 0);
}

}  // namespace
}  // namespace seqconv::internal::kernels::cuda::testing
