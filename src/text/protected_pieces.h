#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "base/enum_names.h"

namespace seqconv::internal {

/// Kinds of strings that a translation must leave as they are.
enum class PieceKind {
  kPlaceholders,  ///< %1$s, %-5.2f, %(name)s, %%, {}, {0}, {name}, {{name}}, ${x}, #{x}
  kUrls,          ///< http://, https://, ftp:// and www.
  kEmails,        ///< name@example.org
  kNumbers,       ///< digits with separators between them, a sign before them
};
template <>
struct EnumNames<PieceKind> {
  static constexpr auto kNames = std::to_array<std::pair<std::string_view, PieceKind>>(
      {{"placeholders", PieceKind::kPlaceholders},
       {"urls", PieceKind::kUrls},
       {"emails", PieceKind::kEmails},
       {"numbers", PieceKind::kNumbers}});
};

/// The kinds that are protected; none: nothing is.
using PieceKinds = std::vector<PieceKind>;

/// A protected piece of a text: bytes from `begin` to before `end`.
struct ProtectedPiece {
  size_t begin = 0;
  size_t end = 0;
  PieceKind kind = PieceKind::kPlaceholders;

  std::string_view of(std::string_view text) const { return text.substr(begin, end - begin); }
  bool operator==(const ProtectedPiece&) const = default;
};

/// The pieces of these kinds in a text of UTF-8, from left to right; where several begin at a
/// place, the first of URL, e-mail address, placeholder and number. A piece alone, or between
/// blanks, is found as the same piece again. Takes time in proportion to the text.
/// docs/tokenization.md says exactly which strings are pieces.
std::vector<ProtectedPiece> find_pieces(std::string_view text, const PieceKinds& kinds);

}  // namespace seqconv::internal
