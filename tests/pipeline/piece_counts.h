#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "pipeline/translator.h"
#include "support/made_up_pieces.h"

namespace seqconv::internal::testing {

/// Whatever stands in a result of random tokens: each piece of the source is there as often as in
/// it, or a note names it.
inline void expect_kept_or_told(
    const std::string& source,
    const TranslationOutcome& result,
    std::map<std::string, int>& counts) {
  const PieceKinds kinds = all_piece_kinds();
  std::map<std::string, int> balance;
  for (const ProtectedPiece& piece : find_pieces(source, kinds))
    ++balance[std::string(piece.of(source))];
  const std::string& text = result.translations.at(0).text;
  for (const ProtectedPiece& piece : find_pieces(text, kinds))
    --balance[std::string(piece.of(text))];
  for (const auto& [spelling, missing] : balance) {
    const auto told = std::ranges::count_if(result.notes, [&](const std::string& note) {
      return note.starts_with("protected piece '" + spelling + "'") &&
          !note.ends_with("has been put in");
    });
    ++counts[missing == 0 ? "kept" : missing > 0 ? "missing" : "too often"];
    EXPECT_TRUE(missing == 0 || told > 0) << source << " -> " << text << ": " << spelling;
  }
}

}  // namespace seqconv::internal::testing
