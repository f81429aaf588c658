#include "text/corpus/pair_pieces.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "base/characters.h"
#include "base/random.h"
#include "base/utf8.h"
#include "text/line_reader.h"

namespace seqconv::internal {
namespace {

constexpr uint64_t kPairsForPractice = 8;  // one of so many practises
constexpr size_t kMostPractised = 3;
constexpr int64_t kLongWord = 6;  // characters
constexpr std::string_view kMadeUpPiece = "x";

uint64_t hash_of_pair(std::string_view a, std::string_view b) {
  uint64_t key = a.size();
  for (const std::string_view text : {a, b})
    for (const char c : text)
      key = mix_words(key, static_cast<unsigned char>(c));
  return key;
}

/// A word of a line, of letters, marks and digits.
struct LineWord {
  size_t begin = 0;
  size_t end = 0;
  int64_t times = 1;  ///< that it comes
};
using LineWords = std::unordered_map<std::string_view, LineWord>;

bool belongs_to_word(char32_t c) {
  return is_letter(c) || is_mark(c) || is_decimal_digit(c);
}

LineWords words_of(std::string_view line) {
  LineWords words;
  for (size_t at = 0; at < line.size();) {
    const size_t begin = at;
    size_t end = at;
    while (at < line.size() && belongs_to_word(next_code_point(line, at)))
      end = at;
    if (end == begin)
      continue;
    const auto [word, is_new] =
        words.try_emplace(line.substr(begin, end - begin), LineWord{begin, end});
    word->second.times += is_new ? 0 : 1;
  }
  return words;
}

/// Names, numbers and long words: what is spelled alike in two languages and means another thing
/// is short.
bool is_likely_the_same(std::string_view word) {
  int64_t characters = 0;
  bool has_digit = false;
  for (size_t at = 0; at < word.size(); ++characters)
    has_digit |= is_decimal_digit(next_code_point(word, at));
  return has_digit || characters >= kLongWord || to_lower(word) != word;
}

void put_piece(LineInSlots& side, size_t begin, size_t end, size_t slot) {
  side.pieces.push_back({begin, end, slot});
}

/// Makes pieces of words that both lines have; false where there is none.
bool practise_words(PairInSlots& pair, uint64_t hash) {
  struct Shared {
    uint64_t order;
    LineWord source, target;
  };
  std::vector<Shared> shared;
  const LineWords targets = words_of(pair.target.line);
  for (const auto& [spelling, word] : words_of(pair.source.line))
    if (const auto found = targets.find(spelling); found != targets.end() && word.times == 1 &&
        found->second.times == 1 && is_likely_the_same(spelling))
      shared.push_back({mix_words(hash, word.begin), word, found->second});
  std::ranges::sort(shared, {}, &Shared::order);
  shared.resize(std::min<size_t>(shared.size(), 1 + hash % kMostPractised));
  std::ranges::sort(shared, {}, [](const Shared& one) { return one.source.begin; });
  for (size_t i = 0; i < shared.size(); ++i) {
    put_piece(pair.source, shared[i].source.begin, shared[i].source.end, (hash + i) % kSlots);
    put_piece(pair.target, shared[i].target.begin, shared[i].target.end, (hash + i) % kSlots);
  }
  std::ranges::sort(pair.target.pieces, {}, &PieceInSlot::begin);
  return !shared.empty();
}

void put_in_front(LineInSlots& side, size_t slot) {
  side.line.insert(0, concat(kMadeUpPiece, " "));
  put_piece(side, 0, kMadeUpPiece.size(), slot);
}

/// `before_end`: in front of the line's last byte.
void put_behind(LineInSlots& side, size_t slot, bool before_end) {
  const size_t at = side.line.size() - (before_end ? 1 : 0);
  side.line.insert(at, concat(" ", kMadeUpPiece));
  put_piece(side, at + 1, at + 1 + kMadeUpPiece.size(), slot);
}

void practise_ends(PairInSlots& pair, uint64_t hash) {
  const std::string &source = pair.source.line, &target = pair.target.line;
  const bool front = hash >> 32 & 1;
  const bool before_end = source.back() == target.back() &&
      std::string_view(".!?:").find(source.back()) != std::string_view::npos;
  for (LineInSlots* const side : {&pair.source, &pair.target})
    if (front)
      put_in_front(*side, hash % kSlots);
    else
      put_behind(*side, hash % kSlots, before_end);
}

/// Gives slots, from the number `first` on, to the pieces that both lines have.
void share_pieces(
    PairInSlots& pair,
    const std::vector<ProtectedPiece>& source,
    const std::vector<ProtectedPiece>& target,
    size_t first) {
  std::unordered_map<std::string_view, std::optional<size_t>> slots;  // nothing: not in the source
  for (const ProtectedPiece& piece : target)
    slots.emplace(piece.of(pair.target.line), std::nullopt);
  size_t used = 0;
  for (const ProtectedPiece& piece : source) {
    const auto found = slots.find(piece.of(pair.source.line));
    if (found == slots.end())
      continue;
    if (!found->second && used < kSlots)
      found->second = (first + used++) % kSlots;
    if (found->second)
      put_piece(pair.source, piece.begin, piece.end, *found->second);
  }
  for (const ProtectedPiece& piece : target)
    if (const auto slot = slots.at(piece.of(pair.target.line)))
      put_piece(pair.target, piece.begin, piece.end, *slot);
}

}  // namespace

PairInSlots find_pair_pieces(
    std::string_view source, std::string_view target, const PieceKinds& kinds, Practice practice) {
  PairInSlots pair{
      {without_stand_ins(clean_line(source))}, {without_stand_ins(clean_line(target))}};
  const auto in_source = find_pieces(pair.source.line, kinds);
  const auto in_target = find_pieces(pair.target.line, kinds);
  const bool is_free = in_source.empty() && in_target.empty();
  if (practice == Practice::kNone && is_free)
    return pair;
  const uint64_t hash = hash_of_pair(pair.source.line, pair.target.line);
  if (!is_free)
    share_pieces(pair, in_source, in_target, practice == Practice::kNone ? 0 : hash % kSlots);
  else if (
      hash / kSlots % kPairsForPractice == 0 && !is_blank(pair.source.line) &&
      !is_blank(pair.target.line) && !practise_words(pair, hash))
    practise_ends(pair, hash);
  return pair;
}

}  // namespace seqconv::internal
