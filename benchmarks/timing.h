#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

namespace seqconv::bench {

/// How long things are timed.
struct TimingOptions {
  double least = 0.03;  ///< seconds of one repeat, at least
  int repeats = 5;
};

inline double seconds_of(const std::function<void()>& f, int64_t count) {
  const auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < count; ++i)
    f();
  const std::chrono::duration<double> passed =
      std::chrono::steady_clock::now() - start;
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

/// Median seconds of a call of each function. Their repeats alternate, so that
/// what slows the machine down for a while slows down all of them.
inline std::vector<double> median_seconds(
    const std::vector<std::function<void()>>& functions,
    const TimingOptions& options) {
  std::vector<int64_t> counts;
  for (const auto& f : functions) {
    f();
    const double once = std::max(1e-7, seconds_of(f, 1));
    counts.push_back(
        std::max<int64_t>(1, static_cast<int64_t>(options.least / once)));
  }
  Samples samples;
  for (int repeat = 0; repeat < options.repeats; ++repeat) {
    auto& sample = samples.emplace_back();
    for (size_t i = 0; i < functions.size(); ++i)
      sample.push_back(seconds_of(functions[i], counts[i]));
  }
  return medians(samples);
}

}  // namespace seqconv::bench
