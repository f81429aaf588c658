#include "train/length_limits.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace seqconv::internal {
namespace {

/// More samples than these tell nothing new.
constexpr int64_t kMostSamples = 1000000;
constexpr int64_t kTokensMore = 10;
constexpr double kRoom = 1.25;
constexpr int64_t kOutliers = 1000;  // one sample in so many
/// A limit that does not grow with the source is taken if it is smaller by this.
constexpr double kClearly = 0.8;

/// The largest but for kOutliers.
double nearly_largest(std::vector<float>& values) {
  const auto place = values.end() - 1 - static_cast<int64_t>(values.size()) / kOutliers;
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

}  // namespace

void fit_length_limits(const SampleSource& samples, DecodingOptions& decoding) {
  const int64_t step = samples.size() / kMostSamples + 1;
  std::vector<float> lengths;
  std::vector<float> ratios;
  double sources = 0;
  for (int64_t i = 0; i < samples.size(); i += step) {  // lengths with </s>
    const auto source = static_cast<float>(samples.source_length(i) - 1 + kTokensMore);
    lengths.push_back(static_cast<float>(samples.target_length(i) - 1));
    ratios.push_back(lengths.back() / source);
    sources += source;
  }
  if (ratios.empty())
    return;
  const double tenths = std::ceil(kRoom * 10 * nearly_largest(ratios) - 1e-3);
  const double factor = std::max(tenths, 1.0) / 10;
  const double fixed = std::ceil(kRoom * nearly_largest(lengths) + 1);
  const double scaled = factor * sources / static_cast<double>(lengths.size());
  const bool is_fixed = fixed < kClearly * scaled;
  decoding.max_length_a = is_fixed ? 0 : factor;
  decoding.max_length_b = static_cast<int64_t>(
      is_fixed ? fixed : std::round(factor * static_cast<double>(kTokensMore)));
}

}  // namespace seqconv::internal
