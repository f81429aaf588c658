#include "libtorch/nn/vocabulary_bands.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>

namespace seqconv::internal {
int64_t VocabularyBands::band_of(int64_t id) const {
  return std::upper_bound(ends.begin(), ends.end(), id) - ends.begin();
}

VocabularyBands make_bands(
    std::string_view op, const std::vector<int64_t>& cutoffs, int64_t vocabulary) {
  int64_t least = kSpecialIds;
  for (const int64_t cutoff : cutoffs) {
    TORCH_CHECK(
        cutoff >= least,
        "[",
        op,
        "] cutoffs must be ascending and at least ",
        kSpecialIds,
        " (the special symbols), but got ",
        cutoffs);
    least = cutoff + 1;
  }
  TORCH_CHECK(
      cutoffs.empty() || cutoffs.back() <= vocabulary,
      "[",
      op,
      "] cutoffs must be at most the vocabulary of ",
      vocabulary,
      " symbols, but got ",
      cutoffs);
  VocabularyBands bands{cutoffs};
  if (cutoffs.empty() || cutoffs.back() < vocabulary)
    bands.ends.push_back(vocabulary);
  return bands;
}

int64_t band_width(std::string_view op, int64_t width, double factor, int64_t band) {
  const double exact = static_cast<double>(width) / std::pow(factor, static_cast<double>(band));
  TORCH_CHECK(
      factor >= 1 && exact >= 1,
      "[",
      op,
      "] the factor must be at least 1 and leave every band a width of 1, but got factor ",
      factor,
      " for width ",
      width,
      ", which gives band ",
      band,
      " a width of ",
      exact);
  return static_cast<int64_t>(exact);
}

}  // namespace seqconv::internal
