#include <numeric>

#include "base/error.h"
#include "search/alignment_options.h"
#include "search/backend.h"

namespace seqconv::internal {

AlignmentOptions AlignmentOptions::resolve(int64_t layers, int64_t all_heads) const {
  AlignmentOptions resolved = *this;
  if (layer < 0)
    resolved.layer = std::max<int64_t>(layers - 2, 0);
  if (resolved.layer >= layers)
    fail_usage("alignment.layer must be below ", layers, ", but got ", layer);
  if (heads.empty()) {
    resolved.heads.resize(static_cast<size_t>(all_heads));
    std::iota(resolved.heads.begin(), resolved.heads.end(), 0);
  }
  for (const int64_t head : heads)
    if (head < 0 || head >= all_heads)
      fail_usage("alignment.heads must be in [0, ", all_heads, "), but got ", head);
  return resolved;
}

AlignmentOptions AlignmentOptions::guided(int64_t layers) {
  return {std::max<int64_t>(layers - 2, 0), {0}, /*next_step=*/true};
}

void take_next_steps(std::vector<SourceShares>& shares) {
  for (SourceShares& own : shares)
    std::copy(own.values.begin() + own.source_tokens, own.values.end(), own.values.begin());
}

std::vector<SourceShares> mean_shares(std::vector<std::vector<SourceShares>> of_models) {
  std::vector<SourceShares> mean = std::move(of_models.front());
  const auto models = static_cast<float>(of_models.size());
  for (size_t i = 0; i < mean.size(); ++i)
    for (size_t j = 0; j < mean[i].values.size(); ++j) {
      float& share = mean[i].values[j];
      for (size_t m = 1; m < of_models.size(); ++m)
        share += of_models[m][i].values[j];
      share /= models;
    }
  return mean;
}

}  // namespace seqconv::internal
