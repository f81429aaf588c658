#include "pipeline/piece_check.h"

#include <algorithm>
#include <map>

#include "base/characters.h"
#include "base/utf8.h"
#include "pipeline/alignment.h"

namespace seqconv::internal {
namespace {

constexpr std::string_view kEnclosing = "()[]{}<>\"'";
constexpr std::string_view kBehindWords = ".,;:!?)]}\"'";

/// So many missing pieces get a place of their own; more of them come at the end.
constexpr size_t kMostPlaced = 64;

/// Spellings, and how often each comes.
using PieceCounts = std::map<std::string, int64_t, std::less<>>;

PieceCounts count_pieces(std::string_view text, const std::vector<ProtectedPiece>& pieces) {
  PieceCounts counts;
  for (const ProtectedPiece& piece : pieces)
    ++counts[std::string(piece.of(text))];
  return counts;
}

int64_t count_of(const PieceCounts& counts, std::string_view spelling) {
  const auto found = counts.find(spelling);
  return found == counts.end() ? 0 : found->second;
}

bool is_space_at(std::string_view text, size_t at) {
  return is_space(next_code_point(text, at));
}

/// The source token that each target token looked at, the other way round: for each source token
/// the target token that looked most at it, or -1.
std::vector<int64_t> targets_of(const SourceShares& shares) {
  std::vector<int64_t> targets(static_cast<size_t>(shares.source_tokens), -1);
  const auto share = [&](int64_t source, int64_t target) {
    return shares.values[static_cast<size_t>(target * shares.source_tokens + source)];
  };
  for (const AlignedTokens& pair : align_tokens(shares)) {
    int64_t& best = targets[static_cast<size_t>(pair.source)];
    if (best < 0 || share(pair.source, best) < share(pair.source, pair.target))
      best = pair.target;
  }
  return targets;
}

std::string times(int64_t count) {
  return count == 1 ? std::string() : concat(" (", count, " times)");
}

}  // namespace

std::vector<int32_t> usable_slots(
    const TextPipeline& source_text,
    std::span<const int32_t> source,
    const TextPipeline& target_text,
    std::span<const int32_t> prefix) {
  const std::vector<int32_t>& slots = target_text.vocabulary().slots();
  const std::vector<int32_t>& source_slots = source_text.vocabulary().slots();
  std::vector<int32_t> usable;
  if (slots.empty() || source_slots.empty())
    return usable;
  for (size_t slot = 0; slot < kSlots; ++slot)
    if (std::ranges::find(source, source_slots[slot]) != source.end() ||
        std::ranges::find(prefix, slots[slot]) != prefix.end())
      usable.push_back(slots[slot]);
  if (!usable.empty())
    usable.push_back(slots[kSlotJoin]);
  std::ranges::sort(usable);
  return usable;
}

PieceCheck::PieceCheck(
    const TextPipeline& source_text,
    const TextPipeline& target_text,
    const Source& source,
    const Slots& slots)
    : target_text_(target_text),
      slots_(slots),
      needs_all_(source.needs_all),
      source_(source_text.line_of_pieces(source.text)),
      given_(target_text.line_of_pieces(source.given)),
      kinds_(source_text.preparation().protects()) {
  pieces_ = find_pieces(source_, kinds_);
  if (pieces_.empty())
    return;
  std::vector<std::string> symbols = source_text.segment(source_);
  const bool is_cut = source.ids.size() < symbols.size();
  symbols.resize(std::min(symbols.size(), source.ids.size()));
  source_ranges_ = source_text.find_ranges(source_, symbols, slots);
  const auto end =
      source_ranges_.empty() ? size_t{0} : static_cast<size_t>(source_ranges_.back().end);
  if (is_cut)
    std::erase_if(pieces_, [&](const ProtectedPiece& piece) { return piece.end > end; });
}

/// The text of one translation while it is put right.
class PieceCheck::Repair {
 public:
  Repair(const PieceCheck& check, LineInSlots text, std::vector<std::string>& notes)
      : check_(check),
        text_(std::move(text.line)),
        placed_(std::move(text.pieces)),
        notes_(notes),
        wanted_(count_pieces(check.source_, check.pieces_)),
        given_(count_pieces(check.given_, find_pieces(check.given_, check.kinds_))) {}

  void set_apart();
  void take_out();
  void put_in(const std::vector<int32_t>& ids, const Look& look);
  void tell_rest();
  std::string take() { return std::move(text_); }

 private:
  std::vector<ProtectedPiece> found() const { return find_pieces(text_, check_.kinds_); }
  int64_t most(std::string_view spelling) const {
    return std::max(count_of(wanted_, spelling), count_of(given_, spelling));
  }
  void note(std::string_view spelling, const std::string& what) {
    notes_.push_back(concat("protected piece '", shorten(std::string(spelling)), "' ", what));
  }
  std::vector<ProtectedPiece> missing() const;
  void tell_left_out(int64_t count);
  std::vector<size_t> places(
      const std::vector<ProtectedPiece>& missing,
      const std::vector<int32_t>& ids,
      const Look& look) const;
  size_t place_near(
      const ProtectedPiece& piece,
      const std::vector<int64_t>& targets,
      const std::vector<ByteRange>& ranges) const;
  bool is_inside(size_t at, const std::vector<ProtectedPiece>& pieces) const;
  size_t outside(size_t at, const std::vector<ProtectedPiece>& pieces, bool forward) const;
  void erase(const ProtectedPiece& piece);
  size_t insert(const ProtectedPiece& piece, size_t at);

  const PieceCheck& check_;
  std::string text_;
  std::vector<PieceInSlot> placed_;
  std::vector<std::string>& notes_;
  PieceCounts wanted_;
  PieceCounts given_;
};

/// Letters that the model wrote beside a slot may make another piece of its spelling, or none.
void PieceCheck::Repair::set_apart() {
  const std::vector<ProtectedPiece> all = found();
  for (auto piece = placed_.rbegin(); piece != placed_.rend(); ++piece) {
    const bool is_whole = std::ranges::any_of(all, [&](const ProtectedPiece& other) {
      return other.begin == piece->begin && other.end == piece->end;
    });
    if (is_whole || piece->slot >= check_.slots_.size())
      continue;
    if (piece->end < text_.size() && !is_space_at(text_, piece->end))
      text_.insert(piece->end, " ");
    if (piece->begin > 0 && text_[piece->begin - 1] != ' ')
      text_.insert(piece->begin, " ");
  }
}

/// Takes a piece out, and the blank that would be too many then; words beside it stay apart.
void PieceCheck::Repair::erase(const ProtectedPiece& piece) {
  size_t begin = piece.begin, end = piece.end, before = begin;
  const bool is_first = begin == 0, is_last = end == text_.size();
  const bool is_behind_blank = is_first || text_[begin - 1] == ' ';
  const bool is_before_blank = is_last || text_[end] == ' ';
  const bool parts_words = !is_behind_blank && !is_before_blank &&
      (is_part_of_word(previous_code_point(text_, before)) ||
       is_part_of_word(next_code_point(text_, end)));
  end = piece.end;
  if (is_behind_blank && is_before_blank && !is_first)
    --begin;
  else if (is_first && !is_last && is_before_blank)
    ++end;
  text_.replace(begin, end - begin, parts_words ? " " : "");
}

void PieceCheck::Repair::take_out() {
  PieceCounts seen, out;
  std::vector<ProtectedPiece> surplus;
  for (const ProtectedPiece& piece : found()) {
    const std::string spelling(piece.of(text_));
    if (++seen[spelling] <= most(spelling) || piece.kind == PieceKind::kNumbers)
      continue;
    surplus.push_back(piece);
    ++out[spelling];
  }
  for (auto piece = surplus.rbegin(); piece != surplus.rend(); ++piece)
    erase(*piece);
  for (const auto& [spelling, count] : out)
    note(spelling, concat("came too often and has been taken out", times(count)));
}

/// Pieces of the source that the text lacks: the last ones of a spelling.
std::vector<ProtectedPiece> PieceCheck::Repair::missing() const {
  PieceCounts there = count_pieces(text_, found());
  std::vector<ProtectedPiece> missing;
  for (const ProtectedPiece& piece : check_.pieces_)
    if (--there[std::string(piece.of(check_.source_))] < 0)
      missing.push_back(piece);
  return missing;
}

void PieceCheck::Repair::tell_left_out(int64_t count) {
  notes_.push_back(concat(
      count, " of the ", check_.pieces_.size(), " protected pieces of the source are left out"));
}

/// Tells whether a place is inside a word or a piece.
bool PieceCheck::Repair::is_inside(size_t at, const std::vector<ProtectedPiece>& pieces) const {
  if (at == 0 || at == text_.size())
    return false;
  const auto piece = std::ranges::lower_bound(pieces, at, {}, &ProtectedPiece::end);
  if (piece != pieces.end() && piece->begin < at && at < piece->end)
    return true;
  const bool ends_piece = piece != pieces.end() && piece->end == at;
  const auto next = ends_piece ? piece + 1 : piece;
  if (ends_piece || (next != pieces.end() && next->begin == at))
    return false;
  size_t before = at;
  return is_part_of_word(previous_code_point(text_, before)) &&
      is_part_of_word(next_code_point(text_, at));
}

/// The end or the begin of the word or piece that a place is inside; the place itself where it is
/// in none.
size_t PieceCheck::Repair::outside(
    size_t at, const std::vector<ProtectedPiece>& pieces, bool forward) const {
  while (is_inside(at, pieces))
    if (forward)
      next_code_point(text_, at);
    else
      previous_code_point(text_, at);
  return at;
}

/// Behind the translation of the nearest source token in front of a piece, or before that of the
/// nearest one behind it.
size_t PieceCheck::Repair::place_near(
    const ProtectedPiece& piece,
    const std::vector<int64_t>& targets,
    const std::vector<ByteRange>& ranges) const {
  const std::vector<ByteRange>& source = check_.source_ranges_;
  const std::vector<ProtectedPiece> pieces = found();
  const auto size = std::min(source.size(), targets.size());
  const auto range_of = [&](size_t token) -> const ByteRange* {
    const int64_t target = targets[token];
    const bool is_there = source[token].end > source[token].begin && target >= 0 &&
        target < std::ssize(ranges) &&
        ranges[static_cast<size_t>(target)].end > ranges[static_cast<size_t>(target)].begin;
    return is_there ? &ranges[static_cast<size_t>(target)] : nullptr;
  };
  size_t left = 0, right = 0;  // tokens in front of the piece, and all but those behind it
  while (left < size && static_cast<size_t>(source[left].end) <= piece.begin)
    ++left;
  right = left;
  while (right < size && static_cast<size_t>(source[right].begin) < piece.end)
    ++right;
  while (left > 0 || right < size) {
    if (left > 0)
      if (const ByteRange* const range = range_of(--left))
        return outside(static_cast<size_t>(range->end), pieces, /*forward=*/true);
    if (right < size)
      if (const ByteRange* const range = range_of(right++))
        return outside(static_cast<size_t>(range->begin), pieces, /*forward=*/false);
  }
  return text_.size();
}

std::vector<size_t> PieceCheck::Repair::places(
    const std::vector<ProtectedPiece>& missing,
    const std::vector<int32_t>& ids,
    const Look& look) const {
  std::vector<size_t> places(std::min(missing.size(), kMostPlaced), text_.size());
  const auto shares = text_.empty() ? std::nullopt : look();
  if (!shares)
    return places;
  const std::vector<int64_t> targets = targets_of(*shares);
  const auto ranges =
      check_.target_text_.find_ranges(text_, check_.target_text_.symbols(ids), check_.slots_);
  for (size_t i = 0; i < places.size(); ++i)
    places[i] = place_near(missing[i], targets, ranges);
  return places;
}

/// Puts a piece in, with blanks but for where its own neighbour or the text's needs none. Returns
/// how many bytes were added.
size_t PieceCheck::Repair::insert(const ProtectedPiece& piece, size_t at) {
  const std::string_view source = check_.source_, text = text_;
  const auto is_alike = [&](size_t of_source, size_t of_text) {
    return source[of_source] == text[of_text] &&
        kEnclosing.find(text[of_text]) != std::string_view::npos;
  };
  const bool is_first = at == 0 || is_space(text[at - 1]);
  const bool is_last = at == text.size() || is_space_at(text, at);
  const bool joins_left = !is_first && piece.begin > 0 && is_alike(piece.begin - 1, at - 1);
  const bool joins_right = !is_last &&
      ((piece.end < source.size() && is_alike(piece.end, at)) ||
       (kBehindWords.find(text[at]) != std::string_view::npos &&
        (at + 1 == text.size() || is_space_at(text, at + 1))));
  for (const bool joins : {true, false}) {
    const std::string added = concat(
        is_first || (joins && joins_left) ? "" : " ",
        piece.of(source),
        is_last || (joins && joins_right) ? "" : " ");
    std::string with = text_;
    with.insert(at, added);
    const size_t begin = at + (added.front() == ' ' ? 1 : 0);
    const bool is_found =
        std::ranges::any_of(find_pieces(with, check_.kinds_), [&](const ProtectedPiece& other) {
          return other.begin == begin && other.of(with) == piece.of(source);
        });
    if (joins && !is_found)
      continue;
    text_ = std::move(with);
    return added.size();
  }
  return 0;
}

void PieceCheck::Repair::put_in(const std::vector<int32_t>& ids, const Look& look) {
  const std::vector<ProtectedPiece> missing = this->missing();
  if (missing.empty())
    return;
  if (!check_.needs_all_)
    return tell_left_out(std::ssize(missing));
  const std::vector<size_t> places = this->places(missing, ids, look);
  std::vector<std::pair<size_t, size_t>> added;  // where in the text before, and how many bytes
  for (size_t i = 0; i < missing.size(); ++i) {
    if (i >= kMostPlaced) {
      text_ += concat(text_.empty() ? "" : " ", missing[i].of(check_.source_));
      continue;
    }
    size_t at = places[i];
    for (const auto& [place, bytes] : added)
      at += place <= places[i] ? bytes : 0;
    added.emplace_back(places[i], insert(missing[i], at));
  }
  PieceCounts counts;
  for (const ProtectedPiece& piece : missing)
    ++counts[std::string(piece.of(check_.source_))];
  for (const auto& [spelling, count] : counts)
    note(spelling, concat("was missing and has been put in", times(count)));
}

/// Says what is still not as it should be.
void PieceCheck::Repair::tell_rest() {
  const PieceCounts there = count_pieces(text_, found());
  for (const auto& [spelling, count] : wanted_)
    if (check_.needs_all_ && count_of(there, spelling) < count)
      note(spelling, "is missing");
  for (const auto& [spelling, count] : there)
    if (count > most(spelling))
      note(spelling, "comes more often than in the source" + times(count - most(spelling)));
}

std::string PieceCheck::repair(
    const std::vector<int32_t>& ids, const Look& look, std::vector<std::string>& notes) const {
  Repair repair(*this, target_text_.decode_pieces(ids, slots_), notes);
  repair.set_apart();
  repair.take_out();
  repair.put_in(ids, look);
  repair.tell_rest();
  return repair.take();
}

void keep_pieces(
    const TranslationSystem& system,
    const SentenceToCheck& sentence,
    Result& result,
    std::vector<Translation>& translations) {
  const TranslationText& text = system.text;
  if (text.options.protect.empty() || sentence.text.empty())
    return;
  const PieceCheck check(
      *text.source,
      *text.target,
      {.text = sentence.text,
       .ids = sentence.source,
       .given = sentence.given,
       .needs_all = system.documents.format == TextFormat::kText},
      sentence.slots);
  std::string others;
  for (size_t i = 0; i < sentence.found.size(); ++i) {
    const std::vector<int32_t>& tokens = sentence.found[i].tokens;
    const std::vector<int32_t> ids(tokens.begin(), tokens.end() - 1);
    const auto look = [&]() -> std::optional<SourceShares> {
      return look_at_source(*system.backend, sentence.source, ids);
    };
    std::vector<std::string> notes;
    translations[i].text = check.repair(ids, look, notes);
    if (i == 0)
      result.notes.insert(result.notes.end(), notes.begin(), notes.end());
    else if (!notes.empty())
      others += concat(others.empty() ? "" : ", ", i + 1);
  }
  if (!others.empty())
    result.notes.push_back(
        concat("protected pieces are put right, or are not, in translations number ", others));
}

}  // namespace seqconv::internal
