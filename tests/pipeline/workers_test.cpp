#include "pipeline/workers.h"

#include <gmock/gmock.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/random.h"
#include "support/errors.h"
#include "support/threads.h"

namespace seqconv::internal {
namespace {

using ::testing::Each;
using testing::error_of;
using testing::leaves_threads;
using testing::loop_until_helped;
using testing::threads_of_this_process;

constexpr int64_t kWorkerCounts[] = {1, 2, 5};

TEST(SharedWork, IsDoneOnceAndByNoMoreThreadsThanAskedFor) {
  for (const int64_t workers : {0, 1, 2, 5, 40})
    for (const size_t count : {0, 1, 4, 30}) {
      const int64_t threads = threads_of_this_process();
      std::vector<std::atomic<int>> done(count);
      std::vector<std::thread::id> by(count);
      share_work(count, workers, [&](size_t item) {
        ++done[item];
        by[item] = std::this_thread::get_id();
      });
      EXPECT_THAT(std::vector<int>(done.begin(), done.end()), Each(1));
      EXPECT_LE(
          std::set(by.begin(), by.end()).size(),
          static_cast<size_t>(std::max<int64_t>(workers, 1)));
      EXPECT_TRUE(leaves_threads(threads));
    }
}

TEST(SharedWork, StartsThreadsForWhatThereIsToDoAlone) {
  const int64_t before = threads_of_this_process();
  share_work(1, 200, [&](size_t) {
    EXPECT_LE(threads_of_this_process(), before);
    // A loop that is too short for two asks for none; another for those that
    // can help it.
    SpareThreads::loop(4, 4, [](int64_t, int64_t) {});
    EXPECT_LE(threads_of_this_process(), before);
    loop_until_helped();
    EXPECT_LE(threads_of_this_process(), before + SpareThreads::kMostHelping);
  });
  EXPECT_TRUE(leaves_threads(before));
  share_work(3, 200, [&](size_t) { EXPECT_LE(threads_of_this_process(), before + 2); });
  EXPECT_TRUE(leaves_threads(before));
  work_with_help(200, [&] {
    EXPECT_LE(threads_of_this_process(), before);
    loop_until_helped();
    EXPECT_LE(threads_of_this_process(), before + SpareThreads::kMostHelping);
  });
  EXPECT_TRUE(leaves_threads(before));
}

TEST(SharedWork, ThrowsWhatOneThreadWouldHaveMet) {
  for (int round = 0; round < 50; ++round)
    for (const int64_t workers : kWorkerCounts) {
      std::atomic<int> at_work = 0;
      const auto work = [&](size_t item) {
        ++at_work;
        if (item == 3)
          std::this_thread::sleep_for(std::chrono::microseconds(200));
        --at_work;
        if (item >= 3)
          fail("item ", item);
      };
      EXPECT_EQ(error_of([&] { share_work(20, workers, work); }), "item 3");
      EXPECT_EQ(at_work, 0);
    }
}

TEST(SharedWork, KeepsTheKindOfAnException) {
  for (const int64_t workers : kWorkerCounts)
    EXPECT_THROW(share_work(9, workers, [](size_t) { throw std::bad_alloc(); }), std::bad_alloc);
}

/// Jobs of `sizes` items, and what is done to them, in that order.
class Jobs {
 public:
  explicit Jobs(std::vector<size_t> sizes) : sizes_(std::move(sizes)) {}

  /// What throws: "read 2", "work 1.3" (of job 1 item 3), "finish 0".
  std::set<std::string> failing;

  /// All that was done, and then the error if there is one.
  std::vector<std::string> run(int64_t workers) {
    at_ = 0;
    steps_.clear();
    try {
      share_jobs(workers, [&] { return next(); });
    } catch (const Error& error) {
      steps_.emplace_back(error.what());
    }
    return steps_;
  }
  int64_t most_open() const { return most_open_; }

 private:
  class Job : public SharedJob {
   public:
    Job(Jobs& jobs, size_t number) : jobs_(jobs), number_(number) {
      const std::lock_guard lock(jobs_.mutex_);
      jobs_.most_open_ = std::max(jobs_.most_open_, ++jobs_.open_);
    }
    ~Job() override {
      const std::lock_guard lock(jobs_.mutex_);
      --jobs_.open_;
    }
    size_t items() const override { return jobs_.sizes_[number_]; }
    void work(size_t item) override {
      std::this_thread::sleep_for(std::chrono::microseconds(20 * random_word(number_, item) % 100));
      jobs_.step(concat("work ", number_, ".", item));
      ++worked_;
    }
    void finish() override {
      EXPECT_EQ(worked_, items());
      jobs_.step(concat("finish ", number_));
    }

   private:
    Jobs& jobs_;
    size_t number_;
    std::atomic<size_t> worked_ = 0;
  };

  std::unique_ptr<SharedJob> next() {
    EXPECT_FALSE(reading_.exchange(true));
    const size_t number = at_++;
    std::unique_ptr<SharedJob> job;
    if (number < sizes_.size()) {
      job = std::make_unique<Job>(*this, number);
      reading_ = false;
      step(concat("read ", number));
    }
    reading_ = false;
    return job;
  }

  void step(const std::string& what) {
    {
      const std::lock_guard lock(mutex_);
      steps_.push_back(what);
    }
    if (failing.contains(what))
      fail(what);
  }

  const std::vector<size_t> sizes_;
  std::mutex mutex_;
  std::vector<std::string> steps_;
  int64_t open_ = 0;
  int64_t most_open_ = 0;
  size_t at_ = 0;
  std::atomic<bool> reading_ = false;
};

std::vector<std::string> only(const char* kind, const std::vector<std::string>& steps) {
  std::vector<std::string> found;
  std::ranges::copy_if(
      steps, std::back_inserter(found), [&](const auto& step) { return step.starts_with(kind); });
  return found;
}

TEST(SharedJobs, AreReadAndFinishedInOrderAndWorkedAtOnce) {
  Jobs jobs({3, 0, 8, 1, 0, 0, 5, 2});
  const auto wanted = jobs.run(1);
  EXPECT_EQ(wanted[0], "read 0");
  EXPECT_EQ(wanted[4], "finish 0");
  EXPECT_EQ(jobs.most_open(), 1);
  for (int round = 0; round < 30; ++round)
    for (const int64_t workers : kWorkerCounts) {
      const auto found = jobs.run(workers);
      for (const char* kind : {"read", "finish"})
        EXPECT_EQ(only(kind, found), only(kind, wanted));
      EXPECT_THAT(found, ::testing::UnorderedElementsAreArray(wanted));
    }
  EXPECT_EQ(jobs.most_open(), 2);
}

TEST(SharedJobs, FailAsInOneThread) {
  for (const std::set<std::string>& failing :
       {std::set<std::string>{"read 0"},
        {"read 2"},
        {"work 2.3"},
        {"work 2.3", "work 2.5", "work 3.0", "read 3"},
        {"finish 1", "work 2.0", "work 2.1"},
        {"work 0.2", "finish 0"},
        {"finish 7"}}) {
    Jobs jobs({3, 0, 8, 1, 0, 0, 5, 2});
    jobs.failing = failing;
    const auto wanted = jobs.run(1);
    EXPECT_TRUE(failing.contains(wanted.back())) << wanted.back();
    for (int round = 0; round < 30; ++round)
      for (const int64_t workers : kWorkerCounts) {
        const auto found = jobs.run(workers);
        EXPECT_EQ(found.back(), wanted.back());
        EXPECT_EQ(only("finish", found), only("finish", wanted));
      }
  }
}

TEST(SharedJobs, TheNextIsReadWhileOneIsAtWork) {
  std::atomic<int> read = 0;
  class Waits : public SharedJob {
   public:
    explicit Waits(std::atomic<int>& read) : read_(read) {}
    size_t items() const override { return 1; }
    void work(size_t) override {
      for (int i = 0; i < 20'000 && read_ < 2; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      EXPECT_GE(read_, 2);
    }

   private:
    std::atomic<int>& read_;
  };
  share_jobs(2, [&]() -> std::unique_ptr<SharedJob> {
    if (++read > 3)
      return nullptr;
    return std::make_unique<Waits>(read);
  });
}

TEST(SharedWork, ThreadsWithoutAnItemHelpTheOthers) {
  share_work(1, 2, [](size_t) { loop_until_helped(); });
}

}  // namespace
}  // namespace seqconv::internal
