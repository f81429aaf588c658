#include "base/spare_threads.h"

#include <gmock/gmock.h>

#include <thread>
#include <vector>

#include "base/error.h"
#include "support/errors.h"
#include "support/threads.h"

namespace seqconv::internal {
namespace {

using ::testing::Each;
using testing::error_of;
using testing::loop_until_helped;

/// Threads that help as long as this lives.
class Helpers {
 public:
  Helpers(SpareThreads& spare, int count) : spare_(spare) {
    for (int i = 0; i < count; ++i)
      threads_.emplace_back([this, calls = spare.calls()] { spare_.help(calls); });
  }
  ~Helpers() { spare_.call_back(); }

 private:
  SpareThreads& spare_;
  std::vector<std::jthread> threads_;
};

/// How often each item of a loop was run.
std::vector<int> runs(int64_t count, int64_t grain) {
  std::vector<int> runs(static_cast<size_t>(count));
  SpareThreads::loop(count, grain, [&](int64_t begin, int64_t end) {
    EXPECT_TRUE(end - begin >= grain || end == count);
    for (int64_t i = begin; i < end; ++i)
      ++runs[static_cast<size_t>(i)];
  });
  return runs;
}

TEST(SpareThreads, EveryItemIsRunOnceWhoeverHelps) {
  for (const int helping : {0, 1, 4, 12}) {
    SpareThreads spare;
    const Helpers helpers(spare, helping);
    const SpareThreads::Lending lending(spare);
    for (const int64_t count : {0, 1, 2, 7, 100, 1000})
      for (const int64_t grain : {1, 3, 64, 5000})
        for (int round = 0; round < 20; ++round)
          EXPECT_THAT(runs(count, grain), Each(1));
  }
}

TEST(SpareThreads, HelpInLoopsThatAreLentToThem) {
  SpareThreads spare;
  const Helpers helpers(spare, 1);
  const SpareThreads::Lending lending(spare);
  loop_until_helped();
  // Again, after it went to sleep.
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  loop_until_helped();
}

TEST(SpareThreads, ManyThreadsMayLendAtATime) {
  SpareThreads spare;
  const Helpers helpers(spare, 3);
  std::vector<std::jthread> lenders;
  for (int i = 0; i < 4; ++i)
    lenders.emplace_back([&] {
      const SpareThreads::Lending lending(spare);
      for (int round = 0; round < 300; ++round)
        EXPECT_THAT(runs(200, 2), Each(1));
    });
}

TEST(SpareThreads, LoopsWithinLoopsAreRunAlone) {
  SpareThreads spare;
  const Helpers helpers(spare, 2);
  const SpareThreads::Lending lending(spare);
  for (int round = 0; round < 100; ++round) {
    std::vector<int> done(40);
    SpareThreads::loop(40, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        done[static_cast<size_t>(i)] += std::ranges::count(runs(10, 1), 1) == 10;
    });
    EXPECT_THAT(done, Each(1));
  }
}

TEST(SpareThreads, WhatABodyThrowsReachesTheLender) {
  SpareThreads spare;
  const Helpers helpers(spare, 2);
  const SpareThreads::Lending lending(spare);
  for (int round = 0; round < 100; ++round) {
    const auto loop = [&] {
      SpareThreads::loop(50, 1, [&](int64_t begin, int64_t end) {
        if (begin <= round % 50 && round % 50 < end)
          fail("item ", round % 50);
      });
    };
    EXPECT_EQ(error_of(loop), concat("item ", round % 50));
    EXPECT_THAT(runs(50, 1), Each(1));
  }
}

TEST(SpareThreads, AreCalledBackEvenBeforeTheyHelp) {
  SpareThreads spare;
  const uint32_t calls = spare.calls();
  spare.call_back();
  spare.help(calls);
  spare.rest(calls);
  EXPECT_GT(spare.calls(), calls);
}

}  // namespace
}  // namespace seqconv::internal
