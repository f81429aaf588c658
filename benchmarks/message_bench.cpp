// What an update of several processes waits for: sums of gradients in buckets
// as training sends them, and shares of new weights, by size. One JSON line a
// size.
//
//   mpirun -np 4 --bind-to none build/release/bin/message_bench
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <span>
#include <vector>

#include "train/processes/communicator_module.h"

extern "C" const seqconv::internal::CommunicatorModule* seqconv_communicator();

namespace {

using seqconv::internal::Communicator;

constexpr int64_t kBucket = 1 << 20;  // elements, as GradientSum::kBucket
constexpr int64_t kSizes[] = {
    1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 5 << 20, 16 << 20, 64 << 20};

/// Median over the rounds, in ms, of the time until the last process is done.
double median_time(Communicator& processes, int rounds, const std::function<void()>& work) {
  std::vector<double> times;
  for (int round = -1; round < rounds; ++round) {  // the first warms up
    processes.barrier();
    const auto begin = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double, std::nano> own = std::chrono::steady_clock::now() - begin;
    const int64_t last = processes.largest(static_cast<int64_t>(own.count()));
    if (round >= 0)
      times.push_back(static_cast<double>(last) / 1e6);
  }
  std::ranges::nth_element(times, times.begin() + rounds / 2);
  return times[static_cast<size_t>(rounds / 2)];
}

void sum_in_buckets(Communicator& processes, std::span<float> values) {
  while (!values.empty()) {
    const size_t count = std::min<size_t>(values.size(), kBucket);
    processes.start_sum(values.first(count));
    values = values.subspan(count);
  }
  processes.finish_sums();
}

}  // namespace

int main() {
  const auto processes = seqconv_communicator()->open({});
  for (const int64_t size : kSizes) {
    std::vector<float> values(static_cast<size_t>(size));
    std::vector<int64_t> ends;
    constexpr int64_t kUnit = Communicator::kShareUnit;
    for (int64_t rank = 1; rank <= processes->size(); ++rank)
      ends.push_back(size / kUnit * rank / processes->size() * kUnit);
    const int rounds = size > (16 << 20) ? 5 : 21;
    const double sum = median_time(*processes, rounds, [&] { sum_in_buckets(*processes, values); });
    const double share = median_time(*processes, rounds, [&] { processes->share(values, ends); });
    if (processes->is_first())
      std::printf(
          "{\"processes\": %lld, \"bytes\": %lld, \"sum_ms\": %.4f, \"share_ms\": %.4f}\n",
          static_cast<long long>(processes->size()),
          static_cast<long long>(size) * 4,
          sum,
          share);
    std::fflush(stdout);
  }
}
