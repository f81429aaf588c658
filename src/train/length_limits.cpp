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

}  // namespace

void fit_length_limits(const SampleSource& samples, DecodingOptions& decoding) {
  const int64_t step = samples.size() / kMostSamples + 1;
  std::vector<float> ratios;
  ratios.reserve(static_cast<size_t>(samples.size() / step + 1));
  for (int64_t i = 0; i < samples.size(); i += step) {  // lengths with </s>
    const auto source = static_cast<float>(samples.source_length(i) - 1 + kTokensMore);
    ratios.push_back(static_cast<float>(samples.target_length(i) - 1) / source);
  }
  if (ratios.empty())
    return;
  const auto largest = ratios.end() - 1 - static_cast<int64_t>(ratios.size()) / kOutliers;
  std::nth_element(ratios.begin(), largest, ratios.end());
  const double tenths = std::ceil(kRoom * 10 * static_cast<double>(*largest) - 1e-3);
  decoding.max_length_a = std::max(tenths, 1.0) / 10;
  decoding.max_length_b =
      static_cast<int64_t>(std::round(decoding.max_length_a * static_cast<double>(kTokensMore)));
}

}  // namespace seqconv::internal
