#include <gtest/gtest.h>

#include "kernels/common/tiles.h"

/// When stores go past the caches and when rows are prefetched: with a
/// last-level cache of a known size, for what the system has differs.
namespace seqconv::kernels {
namespace {

constexpr int64_t kMega = 1 << 20;
constexpr int64_t kCache = 32 * kMega;
constexpr int64_t kHead = 64 * sizeof(float);

alignas(64) const float kOut[32] = {};

CachePlan plan_of(const PassBytes& bytes) {
  return cache_plan(kCache, kOut, kHead, bytes);
}

TEST(CachePlan, PassInACoresOwnCachesIsNotFar) {
  // Whatever is moved counts.
  EXPECT_FALSE(plan_of({.read = kMega}).prefetches);
  EXPECT_TRUE(plan_of({.read = kMega + 1}).prefetches);
  EXPECT_TRUE(plan_of({.read = kMega, .out = 1}).prefetches);
  EXPECT_TRUE(plan_of({.read = kMega, .also = 1}).prefetches);
}

TEST(CachePlan, StreamsOnceReadsTakeHalfOfTheCache) {
  EXPECT_FALSE(plan_of({.read = kCache / 2 - 1, .out = kCache}).streams);
  EXPECT_TRUE(plan_of({.read = kCache / 2, .out = 1}).streams);
  EXPECT_TRUE(plan_of({.read = kCache / 2, .light = true}).streams);
}

TEST(CachePlan, StreamsWholeLinesAlone) {
  const PassBytes many = {.read = kCache, .out = kCache};
  EXPECT_TRUE(cache_plan(kCache, kOut, kHead, many).streams);
  EXPECT_TRUE(cache_plan(kCache, kOut + 16, kHead, many).streams);
  EXPECT_FALSE(cache_plan(kCache, kOut + 1, kHead, many).streams);
  EXPECT_FALSE(cache_plan(kCache, kOut, kHead + 32, many).streams);
}

TEST(CachePlan, FetchesOnceWhatIsKeptOutgrowsTheCache) {
  constexpr int64_t kKept = kCache / 5 * 3;
  EXPECT_FALSE(plan_of({.read = kKept - 2, .also = 2}).from_memory);
  EXPECT_TRUE(plan_of({.read = kKept - 2, .also = 3}).from_memory);
  // What is written is kept unless it is streamed.
  const PassBytes written = {.read = kCache / 2 - 1, .out = kCache};
  EXPECT_TRUE(plan_of(written).from_memory);
  const PassBytes streamed = {.read = kCache / 2, .out = kCache};
  EXPECT_FALSE(plan_of(streamed).from_memory);
}

TEST(CachePlan, FetchesEarlyWhereThatCostsLittle) {
  constexpr int64_t kKept = kCache / 5 * 2;
  EXPECT_FALSE(
      plan_of({.read = kKept - 1, .out = 1, .early = true}).from_memory);
  EXPECT_TRUE(
      plan_of({.read = kKept - 1, .out = 2, .early = true}).from_memory);
  EXPECT_FALSE(plan_of({.read = kKept - 1, .out = 2}).from_memory);
}

TEST(CachePlan, LimitsOfTheSystemAreOrdered) {
  // Whatever size is found out: 16 bytes fit any cache, 2^50 fit none.
  const auto plan = [](const PassBytes& bytes) {
    return cache_plan(0, kOut, kHead, bytes);
  };
  EXPECT_FALSE(plan({.read = 8, .out = 8}).prefetches);
  EXPECT_FALSE(plan({.read = 8, .out = 8}).streams);
  const PassBytes vast = {.read = int64_t{1} << 50};
  EXPECT_TRUE(plan(vast).prefetches);
  EXPECT_TRUE(plan(vast).from_memory);
  // Where another pass streams, a light one does; what is prefetched is far.
  for (int64_t read = 2 * kMega; read < int64_t{1} << 40; read *= 2) {
    const CachePlan heavy = plan({.read = read});
    EXPECT_LE(heavy.streams, plan({.read = read, .light = true}).streams)
        << read;
    EXPECT_LE(
        heavy.from_memory,
        plan({.read = read, .early = true}).from_memory)
        << read;
    EXPECT_LE(heavy.from_memory, heavy.prefetches) << read;
  }
}

TEST(CachePlan, ShapesCountEveryPosition) {
  // [B, T, C] of 2 * 64 positions and 512 channels is 1/4 MB; read are two of
  // them and 256 numbers of every position.
  struct Shape {
    int64_t batch = 2, steps = 64, channels = 512;
    int64_t head_channels() const { return 64; }
  };
  const auto plan = [](int64_t cache_bytes) {
    return cache_plan(
        Execution{{}, Isa::kBaseline, cache_bytes},
        Shape{},
        kOut,
        {.read = 2 * 512 + 256});
  };
  constexpr int64_t kRead = 2 * 64 * (2 * 512 + 256) * sizeof(float);
  EXPECT_TRUE(plan(2 * kRead).streams);
  EXPECT_FALSE(plan(2 * kRead + 2).streams);
}

}  // namespace
}  // namespace seqconv::kernels
