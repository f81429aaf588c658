#include "text/slots.h"

#include <algorithm>

#include "base/error.h"
#include "base/made_once.h"
#include "base/utf8.h"

namespace seqconv::internal {
namespace {

// U+FDD0 to U+FDEF, which are no characters: two bytes, and one of 0x90 to 0xAF.
constexpr std::string_view kStandIn = "\xEF\xB7";
constexpr unsigned char kFirst = 0x90;
constexpr unsigned char kLast = 0xAF;
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

/// The next stand-in at `from` or behind it; npos where there is none.
size_t find_stand_in(std::string_view text, size_t from) {
  for (size_t at = from; (at = text.find(kStandIn, at)) != std::string_view::npos; ++at) {
    const size_t last = at + kStandIn.size();
    if (last < text.size() && static_cast<unsigned char>(text[last]) >= kFirst &&
        static_cast<unsigned char>(text[last]) <= kLast)
      return at;
  }
  return std::string_view::npos;
}

}  // namespace

const std::vector<std::string>& slot_symbols() {
  static MadeOnce<std::vector<std::string>> made;
  return made.get([] {
    std::vector<std::string> symbols;
    for (size_t slot = 1; slot <= kSlots; ++slot)
      symbols.push_back(concat("<slot:", slot, ">"));
    symbols.emplace_back("<slot:join>");
    return symbols;
  });
}

Slots::Slots(std::string_view line, const PieceKinds& kinds) {
  for (const ProtectedPiece& piece : find_pieces(line, kinds)) {
    if (spellings_.size() == kSlots)
      return;
    if (const std::string_view spelling = piece.of(line); !find(spelling))
      spellings_.emplace_back(spelling);
  }
}

std::optional<size_t> Slots::find(std::string_view spelling) const {
  const auto found = std::ranges::find(spellings_, spelling);
  if (found == spellings_.end())
    return std::nullopt;
  return static_cast<size_t>(found - spellings_.begin());
}

std::vector<PieceInSlot> pieces_in_slots(
    std::string_view line, const PieceKinds& kinds, const Slots& slots) {
  std::vector<PieceInSlot> pieces;
  if (slots.size() == 0)
    return pieces;
  for (const ProtectedPiece& piece : find_pieces(line, kinds))
    if (const auto slot = slots.find(piece.of(line)))
      pieces.push_back({piece.begin, piece.end, *slot});
  return pieces;
}

std::string without_stand_ins(std::string line) {
  for (size_t at = 0; (at = find_stand_in(line, at)) != std::string::npos;)
    line.replace(at, kReplacement.size(), kReplacement);
  return line;
}

std::string stand_in(size_t slot) {
  return concat(kStandIn, static_cast<char>(kFirst + 1 + slot));
}

LineInSlots fill_slots(std::string_view text, const Slots& slots) {
  LineInSlots all;
  std::string& filled = all.line;
  for (size_t from = 0;;) {
    const size_t at = find_stand_in(text, from);
    filled.append(text.substr(from, at - from));
    if (at == std::string_view::npos)
      return all;
    from = at + kReplacement.size();
    const auto slot = static_cast<size_t>(static_cast<unsigned char>(text[from - 1])) - kFirst - 1;
    if (slot == kSlotJoin) {
      filled.erase(filled.find_last_not_of(' ') + 1);
      from = std::min(text.find_first_not_of(' ', from), text.size());
    } else if (slot < kSlots) {
      const std::string_view spelling = slots.spelling(slot);
      const size_t begin = filled.size();
      filled += spelling.empty() ? std::string_view(slot_symbols()[slot]) : spelling;
      all.pieces.push_back({begin, filled.size(), slot});
    }
  }
}

}  // namespace seqconv::internal
