#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/special_ids.h"

namespace seqconv::internal {

/// A vocabulary sorted by falling frequency, cut into bands: band i holds the
/// ids [begin(i), end(i)), band 0 the most frequent and the special ones
/// (Grave et al. 2017; semantics.md 2.2).
struct VocabularyBands {
  std::vector<int64_t> ends;  ///< ascending, the last is V

  int64_t count() const { return static_cast<int64_t>(ends.size()); }
  int64_t begin(int64_t band) const { return band == 0 ? 0 : ends[static_cast<size_t>(band) - 1]; }
  int64_t end(int64_t band) const { return ends[static_cast<size_t>(band)]; }
  int64_t size(int64_t band) const { return end(band) - begin(band); }
  int64_t vocabulary() const { return ends.back(); }
  /// The band of an id in [0, V).
  int64_t band_of(int64_t id) const;
};

/// The bands that end at `cutoffs` and at V. Error "[op] ..." unless the
/// cutoffs are ascending, above the special symbols and at most V.
VocabularyBands make_bands(
    std::string_view op, const std::vector<int64_t>& cutoffs, int64_t vocabulary);

/// floor(width / factor^band); Error "[op] ..." when that is zero.
int64_t band_width(std::string_view op, int64_t width, double factor, int64_t band);

}  // namespace seqconv::internal
