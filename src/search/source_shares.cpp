#include "search/backend.h"

namespace seqconv::internal {

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
