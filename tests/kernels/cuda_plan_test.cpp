#include <gtest/gtest.h>

#include <array>
#include <set>

#include "kernels/cuda/conv/band.h"
#include "kernels/cuda/talk/tile.h"
#include "kernels/cuda_support.h"

/// Tile choice, launch limits and fragment maps: what needs no data.
namespace seqconv::internal::kernels::cuda {
namespace {

constexpr int64_t kKernelSizes[] = {
    1, 2, 3, 4, 7, 8, 14, 15, 16, 31, 32, 63, 64, 127, 255, 256, 511, 1000};
constexpr int64_t kHeadChannels[] = {1, 3, 4, 8, 16, 60, 64, 100, 128, 1024};

/// Calls check(request) over storage types, passes, sizes and vectors.
template <class Check>
void for_requests(const Check& check) {
  for (const int64_t K : kKernelSizes)
    for (const int64_t R : kHeadChannels)
      for (const int64_t H : {1, 2, 16, 1024})
        for (const int bytes : {2, 4})
          for (const bool backward : {false, true})
            for (const bool per_row : {false, true})
              for (const int vector : {1, 4}) {
                if (vector == 4 && R % 4 != 0)
                  continue;
                const ConvShape shape = {
                    .batch = 8,
                    .steps = 4096,
                    .channels = R * H,
                    .heads = H,
                    .kernel_size = K,
                    .padding_left = K / 2};
                SCOPED_TRACE(
                    ::testing::Message()
                    << "K " << K << " R " << R << " H " << H << " bytes " << bytes << " backward "
                    << backward << " per row " << per_row << " vector " << vector);
                check(ConvPlanRequest{shape, backward, per_row, vector, bytes});
              }
}

/// Every channel of every head and every position belongs to one block.
void expect_covers(const ConvPlan& plan, const ConvShape& shape) {
  EXPECT_GT(plan.blocks, 0);
  EXPECT_LT(plan.blocks, int64_t{1} << 31);
  EXPECT_GE(plan.groups * plan.heads, shape.heads);
  EXPECT_LT((plan.groups - 1) * plan.heads, shape.heads);
  EXPECT_GE(plan.tiles * plan.rows, shape.steps);
  EXPECT_GE(plan.units * plan.tiles_per_block, shape.batch * plan.tiles);
  EXPECT_LT((plan.units - 1) * plan.tiles_per_block, shape.batch * plan.tiles);
  EXPECT_EQ(plan.units * plan.groups, plan.blocks);
  if (plan.heads > 1) {
    EXPECT_EQ(plan.width, plan.heads * shape.head_channels());
  }
}

TEST(CudaConvPlan, FitsEveryDeviceForKernelsUpTo511) {
  for_requests([](const ConvPlanRequest& request) {
    const ConvPlan plan = plan_fma(request);
    if (plan.rows == 0) {
      EXPECT_GT(request.shape.kernel_size, 511);
      return;
    }
    ConvPlanRequest small = request;
    small.limit = kMediumShared;
    const ConvPlan min_plan = plan_fma(small);
    EXPECT_LE(min_plan.shared, kMediumShared);
    if (request.shape.kernel_size <= 511) {
      EXPECT_GT(min_plan.rows, 0);
    }
    small.limit = kTuringShared;
    const ConvPlan turing_plan = plan_fma(small);
    EXPECT_LE(turing_plan.shared, kTuringShared);
    if (request.shape.kernel_size <= 256) {
      EXPECT_GT(turing_plan.rows, 0);
    }
    EXPECT_LE(plan.shared, kMaxShared);
    EXPECT_EQ(plan.rows % 8, 0);
    EXPECT_LE(plan.width, kThreads) << "columns are dealt out to threads";
    EXPECT_EQ(plan.width % request.vector, 0);
    EXPECT_EQ(plan.pitch % request.vector, 0);
    EXPECT_EQ(plan.columns * request.vector, plan.width);
    EXPECT_EQ(plan.tap_pitch % 4, 0) << "taps are read 16 bytes at a time";
    for (const int64_t at : {plan.taps_at, plan.stats_at, plan.x_at, plan.y_at, plan.grads_at})
      EXPECT_EQ(at % 16, 0);
    expect_covers(plan, request.shape);
  });
}

TEST(CudaConvPlan, PaperSizesLeaveRoomForSeveralBlocks) {
  for (const int64_t K : {3, 7, 15, 31})
    for (const int64_t H : {8, 16}) {
      const ConvShape shape = {
          .batch = 8, .steps = 4096, .channels = 1024, .heads = H, .kernel_size = K};
      for (const bool backward : {false, true}) {
        EXPECT_LE(plan_fma({shape, backward, true, 4, 4}).shared, kMediumShared);
        const ConvPlan band = plan_band({shape, backward, true, 1, 2});
        EXPECT_EQ(band.rows, K >= kFewestBandTaps ? 64 : 0);
        EXPECT_LE(band.shared, 56 * 1024);
      }
    }
}

TEST(CudaConvPlan, TensorCoresTakeKernelsOf15To255) {
  for_requests([](const ConvPlanRequest& request) {
    const ConvPlan plan = plan_band(request);
    const int64_t K = request.shape.kernel_size;
    const bool can =
        request.storage_bytes == 2 && K >= 15 && request.shape.head_channels() % 8 == 0;
    if (!can || K <= 255) {
      EXPECT_EQ(plan.rows > 0, can);
    }
    if (plan.rows == 0)
      return;
    EXPECT_LE(plan.shared, kMaxShared);
    EXPECT_TRUE(plan.rows == 64 || plan.rows == 32);
    // Rows of 16 bytes, eight of which lie in different banks.
    for (const int pitch : {plan.pitch, plan.tap_pitch}) {
      EXPECT_EQ(pitch % 8, 0);
      EXPECT_EQ(pitch / 8 % 2, 1);
    }
    EXPECT_GE(plan.in_rows, plan.rows + K - 1);
    EXPECT_GE(plan.tap_pitch, band_columns(static_cast<int>(K)));
    EXPECT_GE(plan.y_at == 0 ? INT64_MAX : plan.y_at, plan.x_at);
    expect_covers(plan, request.shape);
  });
}

TEST(CudaTalkPlan, FitsEveryDevice) {
  for (const int64_t R : kHeadChannels)
    for (const int64_t H : {1, 2, 16, 1024})
      for (const int64_t reach : {0, 1, 31, 63, 300, 5000}) {
        const TalkShape shape = {8, 10000, R * H, H, reach, reach / 2};
        const TalkPlan forward = plan_talk_forward(shape);
        const TalkPlan backward = plan_talk_backward(shape);
        SCOPED_TRACE(::testing::Message() << "R " << R << " H " << H << " reach " << reach);
        EXPECT_LE(forward.shared, kMediumShared);
        EXPECT_LE(backward.shared, kMediumShared);
        const TalkPlan small = plan_talk_forward(shape, kTuringShared);
        EXPECT_LE(small.shared, kTuringShared);
        EXPECT_GE(small.capacity, kTalkTile);
        EXPECT_LE(plan_talk_backward(shape, kTuringShared).shared, kTuringShared);
        EXPECT_GE(forward.capacity, reach <= 300 ? kTalkTile + reach + reach / 2 + 1 : kTalkTile);
        for (const TalkPlan& plan : {forward, backward}) {
          EXPECT_LE(plan.width, kThreads);
          EXPECT_LT(plan.blocks, int64_t{1} << 31);
          EXPECT_GE(plan.groups * plan.heads, H);
          EXPECT_LT((plan.groups - 1) * plan.heads, H);
        }
        EXPECT_EQ(kMaxCopies % backward.copies, 0);
        EXPECT_LE(backward.copies / 2 * 2 * backward.width, 2 * kThreads);
      }
}

TEST(CudaTalkPlan, PaperSizesLeaveRoomForSeveralBlocksAndLongerWindows) {
  for (const int64_t H : {8, 16, 1024})
    for (const int64_t reach : {1, 3, 7, 15, 31, 63, 127}) {
      const TalkPlan plan = plan_talk_forward({8, 4096, 1024, H, reach, reach});
      EXPECT_LE(plan.shared, 56 * 1024) << H << " " << reach;
      // Offsets up to 1.1, those of a dropout of 0.1.
      EXPECT_GE(plan.capacity, kTalkTile + kTalkSegment + 22 * reach / 10) << H << " " << reach;
      if (H < 1024 && reach <= 31) {
        EXPECT_EQ(plan.width, 64);
      }
    }
}

TEST(CudaTilePlan, PlacesOfThreadsAreQuotientsAndRemainders) {
  for (int width = 1; width <= kThreads; ++width) {
    TilePlan plan;
    plan.set_columns(width);
    for (int thread = 0; thread < kThreads; ++thread) {
      const Place<1> place(plan, thread);
      EXPECT_EQ(place.row, thread / width);
      EXPECT_EQ(place.column, thread % width);
      EXPECT_EQ(place.stride, kThreads / width);
    }
  }
}

/// Every element of a fragment has one owner.
TEST(CudaMma, FragmentMapsAreOneToOne) {
  std::set<std::pair<int, int>> sums, down, right;
  for (int lane = 0; lane < kWarp; ++lane) {
    for (int e = 0; e < 4; ++e)
      sums.insert({sum_row(lane, e), sum_column(lane, e)});
    down.insert({down_row(lane), down_column(lane)});
    right.insert({right_row(lane), right_column(lane)});
  }
  EXPECT_EQ(sums.size(), 16 * 8);
  EXPECT_EQ(sums.rbegin()->first, 15);
  EXPECT_EQ(down.size(), kWarp);
  EXPECT_EQ(down, right);
}

/// The documented layout, element by element: A and B as they are loaded give
/// the product.
TEST(CudaMma, MultipliesLikeTheInstruction) {
  alignas(16) BFloat16 a[16 * 16], b[16 * 16];
  float want[16][16] = {};
  for (int i = 0; i < 256; ++i) {
    a[i] = to_bfloat16(static_cast<float>(i % 13 - 6));
    b[i] = to_bfloat16(static_cast<float>(i % 7 - 3));
  }
  for (int m = 0; m < 16; ++m)
    for (int n = 0; n < 16; ++n)
      for (int k = 0; k < 16; ++k)
        want[m][n] += widen(a[16 * m + k]) * widen(b[16 * k + n]);
  HostWarp warp(0);
  Lanes<Matrices> left, right;
  load_matrices<false>(
      warp, left, [&](int lane) { return a + 16 * down_row(lane) + down_column(lane); });
  load_matrices<true>(
      warp, right, [&](int lane) { return b + 16 * down_row(lane) + down_column(lane); });
  for (int half = 0; half < 2; ++half) {
    Lanes<MmaSum> sums = {};
    multiply_add<BFloat16>(
        warp, left, right, half, [&](int lane) -> MmaSum& { return sums[lane]; });
    for (int lane = 0; lane < kWarp; ++lane)
      for (int e = 0; e < 4; ++e)
        EXPECT_EQ(sums[lane].v[e], want[sum_row(lane, e)][8 * half + sum_column(lane, e)]);
  }
}

/// mma.m16n8k8 as documented: lane l holds of A [16, 8] the pairs a0, row l/4,
/// and a1, row l/4 + 8, at columns 2 (l%4) and the next, of B [8, 8] the pair
/// of rows 2 (l%4) and the next in column l/4, and of C what m16n8k16 holds.
void half_mma(Lanes<MmaSum>& sums, Lanes<Matrices>& a, int first, Lanes<Matrices>& b, int pair) {
  float left[16][8], right[8][8];
  for (int lane = 0; lane < kWarp; ++lane)
    for (int i = 0; i < 2; ++i) {
      const int k = 2 * (lane % 4) + i;
      for (int p = 0; p < 2; ++p)
        left[lane / 4 + 8 * p][k] = of_pair<Float16>(a[lane].pair[first + p], i);
      right[k][lane / 4] = of_pair<Float16>(b[lane].pair[pair], i);
    }
  for (int lane = 0; lane < kWarp; ++lane)
    for (int e = 0; e < 4; ++e)
      for (int k = 0; k < 8; ++k)
        sums[lane].v[e] += left[sum_row(lane, e)][k] * right[k][sum_column(lane, e)];
}

/// Compute capability 7.5 multiplies by halves, as mma_instruction pairs them.
TEST(CudaMma, TheHalvesOfCapability75MakeTheWhole) {
  alignas(16) Float16 a[16 * 16], b[16 * 16];
  for (int i = 0; i < 256; ++i) {
    a[i] = narrow<Float16>(static_cast<float>(i % 13 - 6));
    b[i] = narrow<Float16>(static_cast<float>(i % 7 - 3));
  }
  HostWarp warp(0);
  Lanes<Matrices> left, right;
  load_matrices<false>(
      warp, left, [&](int lane) { return a + 16 * down_row(lane) + down_column(lane); });
  load_matrices<true>(
      warp, right, [&](int lane) { return b + 16 * down_row(lane) + down_column(lane); });
  for (int half = 0; half < 2; ++half) {
    Lanes<MmaSum> whole = {}, halves = {};
    multiply_add<Float16>(
        warp, left, right, half, [&](int lane) -> MmaSum& { return whole[lane]; });
    half_mma(halves, left, 0, right, 2 * half);
    half_mma(halves, left, 2, right, 2 * half + 1);
    for (int lane = 0; lane < kWarp; ++lane)
      for (int e = 0; e < 4; ++e)
        EXPECT_EQ(halves[lane].v[e], whole[lane].v[e]);
  }
}

TEST(CudaStorage, Float16RoundsToNearestEven) {
  for (int bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = widen(Float16{half});
    if (value == value)
      ASSERT_EQ(narrow<Float16>(value).bits, half);
    else
      ASSERT_TRUE(std::isnan(widen(narrow<Float16>(value))));
  }
  EXPECT_EQ(widen(Float16{0x3c01}), 1 + 1.0f / 1024);
  EXPECT_EQ(narrow<Float16>(1 + 1.0f / 2048).bits, 0x3c00);  // a tie: even
  EXPECT_EQ(narrow<Float16>(1 + 3.0f / 2048).bits, 0x3c02);
  EXPECT_EQ(narrow<Float16>(65519.0f).bits, 0x7bff);
  EXPECT_EQ(narrow<Float16>(65520.0f).bits, 0x7c00);
  EXPECT_EQ(narrow<Float16>(-std::ldexp(1.0f, -24)).bits, 0x8001);
  EXPECT_EQ(narrow<Float16>(std::ldexp(1.0f, -25)).bits, 0);  // a tie: even
}

}  // namespace
}  // namespace seqconv::internal::kernels::cuda
