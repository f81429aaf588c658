#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace seqconv::internal {

/// Counts the symbols of a text that its vocabulary does not know. </s> is not
/// counted.
struct SymbolCount {
  int64_t symbols = 0;
  int64_t unknown = 0;  ///< of them <unk>

  /// Those of a line, by its ids without </s>.
  static SymbolCount of(std::span<const int32_t> ids);
  SymbolCount& operator+=(const SymbolCount& other);

  /// Tells whether half of the symbols or more are unknown: a text of another
  /// language, script or segmentation than the vocabulary's.
  bool is_mostly_unknown() const;
  /// "12 of 16 symbols (75 %) are unknown: ..."
  std::string warning() const;
};

}  // namespace seqconv::internal
