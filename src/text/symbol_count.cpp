#include "text/symbol_count.h"

#include <algorithm>

#include "base/error.h"
#include "base/special_ids.h"

namespace seqconv::internal {

SymbolCount SymbolCount::of(std::span<const int32_t> ids) {
  return {std::ssize(ids), std::count(ids.begin(), ids.end(), kUnknownId)};
}

SymbolCount& SymbolCount::operator+=(const SymbolCount& other) {
  symbols += other.symbols;
  unknown += other.unknown;
  return *this;
}

bool SymbolCount::is_mostly_unknown() const {
  return unknown > 0 && unknown >= symbols - unknown;
}

std::string SymbolCount::warning() const {
  return concat(
      unknown,
      " of ",
      symbols,
      " symbols (",
      100 * unknown / std::max<int64_t>(symbols, 1),
      " %) are not in the vocabulary and read as <unk>: is it a text of this model's language and "
      "subwords?");
}

}  // namespace seqconv::internal
