#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <fstream>
#include <mutex>
#include <set>
#include <thread>

#include "libtorch/ops/conv_form.h"
#include "libtorch/ops/parallel.h"
#include "seqconv/ops/talk.h"

/// Threads: that there are several, that there is one library of them, and that
/// no result depends on their number.
namespace seqconv::ops {
using namespace internal;
namespace {

using testing::differentiate;

class Threads : public ::testing::Test {
 protected:
  void SetUp() override {
    before_ = at::get_num_threads();
    at::manual_seed(1);
  }
  void TearDown() override { at::set_num_threads(before_); }

 private:
  int before_ = 1;
};

TEST_F(Threads, ParallelForRunsInSeveralThreads) {
  at::set_num_threads(3);
  std::mutex mutex;
  std::set<std::thread::id> seen;
  int64_t covered = 0;
  parallel_for()(12, 1, [&](int64_t begin, int64_t end) {
    const std::lock_guard lock(mutex);
    seen.insert(std::this_thread::get_id());
    covered += end - begin;
  });
  EXPECT_EQ(seen.size(), 3);
  EXPECT_EQ(covered, 12);
}

TEST_F(Threads, ParallelForKeepsSmallWorkInOneThread) {
  at::set_num_threads(3);
  int calls = 0;
  parallel_for()(12, 100, [&](int64_t, int64_t) { ++calls; });
  EXPECT_EQ(calls, 1);
}

TEST_F(Threads, AnErrorInAThreadReachesTheCaller) {
  at::set_num_threads(3);
  EXPECT_THROW(
      parallel_for()(
          12,
          1,
          [](int64_t begin, int64_t) {
            if (begin > 0)
              throw std::runtime_error("stop");
          }),
      std::runtime_error);
}

TEST_F(Threads, OneOpenMpLibraryIsLoaded) {
  std::ifstream maps("/proc/self/maps");
  if (!maps)
    GTEST_SKIP() << "no /proc/self/maps on this system";
  std::set<std::string> libraries;
  for (std::string line; std::getline(maps, line);)
    for (const char* const name : {"libgomp", "libomp.", "libiomp"})
      if (line.find(name) != std::string::npos)
        libraries.insert(line.substr(line.find('/')));
  EXPECT_EQ(libraries.size(), 1) << ::testing::PrintToString(libraries);
}

/// y and gradients with each number of threads, to be the same bits.
void expect_same_for_any_threads(
    const testing::TensorFunction& function, const std::vector<at::Tensor>& inputs) {
  const at::Tensor grad = at::randn_like(inputs[0]);
  at::set_num_threads(1);
  const auto one = differentiate(function, inputs, grad);
  for (const int threads : {2, 3, 7}) {
    at::set_num_threads(threads);
    const auto many = differentiate(function, inputs, grad);
    EXPECT_TRUE(many.y.equal(one.y)) << threads;
    for (size_t i = 0; i < one.grads.size(); ++i)
      EXPECT_TRUE(many.grads[i].equal(one.grads[i]))
          << "gradient " << i << " with " << threads << " threads";
  }
}

TEST_F(Threads, GradientsAreTheSameBitsForAnyNumber) {
  for (const Form form : {Form::kLight, Form::kDynamic}) {
    ConvCall call = {.form = form, .sizes = {5, 150, 96, 4, 15, 7}};
    call.drop = {.p = 0.2, .seed = at::tensor(int64_t{3})};
    expect_same_for_any_threads(call.function(), call.inputs(at::kFloat));
  }
  const auto function = [](const std::vector<at::Tensor>& in) {
    return talk(in[0], in[1], in[2], {.max_left = 15, .max_right = 15});
  };
  expect_same_for_any_threads(
      function, {at::randn({5, 150, 96}), at::rand({5, 150, 4}), at::rand({5, 150, 4})});
}

}  // namespace
}  // namespace seqconv::ops
