#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

namespace seqconv::bench {
using namespace internal;

/// How long things are timed.
struct TimingOptions {
  double min = 0.03;  ///< seconds before a repeat; about as many of it
  int repeats = 5;
};

inline double seconds_of(const std::function<void()>& f, int64_t count) {
  const auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < count; ++i)
    f();
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  return passed.count() / static_cast<double>(count);
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/// Samples of several quantities, one vector of them after the other.
using Samples = std::vector<std::vector<double>>;

/// The median of every quantity.
inline std::vector<double> medians(const Samples& samples) {
  std::vector<double> all;
  for (size_t i = 0; i < samples.front().size(); ++i) {
    std::vector<double> values;
    for (const auto& sample : samples)
      values.push_back(sample[i]);
    all.push_back(median(std::move(values)));
  }
  return all;
}

/// Seconds of a call in the state that calls leave behind. What ran before has
/// emptied the caches: a set of 17 MB is back in the third-level cache after
/// some eight calls, which take four times as long. So a turn begins with as
/// many calls that are not timed.
inline double warm_seconds_of(const std::function<void()>& f, double min) {
  const auto start = std::chrono::steady_clock::now();
  std::chrono::duration<double> passed{};
  int64_t count = 0;
  do {
    f();
    ++count;
    passed = std::chrono::steady_clock::now() - start;
  } while (passed.count() < min);
  return seconds_of(f, count);
}

/// Median seconds of a call of each function. Their repeats alternate, so that
/// what slows the machine down for a while slows down all of them.
inline std::vector<double> median_seconds(
    const std::vector<std::function<void()>>& functions, const TimingOptions& options) {
  Samples samples;
  for (int repeat = 0; repeat < options.repeats; ++repeat) {
    auto& sample = samples.emplace_back();
    for (const auto& f : functions)
      sample.push_back(warm_seconds_of(f, options.min));
  }
  return medians(samples);
}

}  // namespace seqconv::bench
