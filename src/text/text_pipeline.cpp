#include "text/text_pipeline.h"

#include <utility>

#include "base/characters.h"
#include "base/special_ids.h"
#include "base/utf8.h"
#include "text/line_reader.h"
#include "text/segmenter.h"
#include "text/token_ranges.h"

namespace seqconv::internal {
TextPipeline::TextPipeline(
    std::shared_ptr<const Segmenter> segmenter,
    std::shared_ptr<const Vocabulary> vocabulary,
    Preparation preparation)
    : segmenter_(std::move(segmenter)),
      vocabulary_(std::move(vocabulary)),
      preparation_(std::move(preparation)) {}

bool cut_tokens(std::vector<int32_t>& ids, int64_t most) {
  if (most == 0 || std::ssize(ids) < most)
    return false;
  ids.resize(static_cast<size_t>(most) - 1);
  return true;
}

TextPipeline TextPipeline::with(Preparation preparation) const {
  return {segmenter_, vocabulary_, std::move(preparation)};
}

std::string TextPipeline::line_of_pieces(std::string_view line) const {
  return without_stand_ins(clean_line(line));
}

Slots TextPipeline::slots_of(std::string_view line) const {
  return protects() ? Slots(line_of_pieces(line), preparation_.protects()) : Slots();
}

/// Says that blanks are symbols, so that none is lost beside a slot.
bool TextPipeline::keeps_blanks() const {
  const Subword kind = segmenter_->kind();
  return kind == Subword::kCharacters || kind == Subword::kBytes;
}

/// The text between slots, or between one and an end of the line.
struct TextPipeline::Between {
  std::string_view text;
  bool is_behind = false;  ///< a slot
  bool is_before = false;
};

/// Splits text between slots as a line of its own. A blank beside a slot is none of its symbols:
/// where there is none, the symbol that joins says so.
void TextPipeline::visit_between(
    const Between& between, const TakeSymbol& take, const TakeSlot& take_slot) const {
  std::string_view text = between.text;
  bool joins_last = between.is_behind, joins_next = between.is_before;
  if (keeps_blanks()) {
    joins_last = joins_next = false;
  } else if (!text.empty()) {
    size_t first = 0, last = text.size();
    joins_last = joins_last && !is_space(next_code_point(text, first));
    joins_next = joins_next && !is_space(previous_code_point(text, last));
    const size_t end = between.is_before && !joins_next ? last : text.size();
    const size_t begin = between.is_behind && !joins_last ? std::min(first, end) : 0;
    text = text.substr(begin, end - begin);
  }
  bool has_symbols = false;
  segmenter_->visit(preparation_.apply(text), [&](std::string_view symbol) {
    if (!has_symbols && joins_last)
      take_slot(kSlotJoin);
    has_symbols = true;
    take(symbol);
  });
  if (has_symbols ? joins_next : joins_last && joins_next)
    take_slot(kSlotJoin);
}

void TextPipeline::visit(
    std::string_view line,
    std::span<const PieceInSlot> pieces,
    const TakeSymbol& take,
    const TakeSlot& take_slot) const {
  if (pieces.empty())
    return segmenter_->visit(preparation_.apply(line), take);
  size_t begin = 0;
  for (const PieceInSlot& piece : pieces) {
    visit_between({line.substr(begin, piece.begin - begin), begin > 0, true}, take, take_slot);
    take_slot(piece.slot);
    begin = piece.end;
  }
  visit_between({line.substr(begin), begin > 0, false}, take, take_slot);
}

std::vector<std::string> TextPipeline::segment(std::string_view line) const {
  std::vector<std::string> symbols;
  const auto take = [&](std::string_view symbol) { symbols.emplace_back(symbol); };
  if (!protects()) {
    visit_symbols(line, take);
    return symbols;
  }
  const std::string own = line_of_pieces(line);
  const PieceKinds& kinds = preparation_.protects();
  visit(own, pieces_in_slots(own, kinds, Slots(own, kinds)), take, [&](size_t slot) {
    symbols.push_back(slot_symbols()[slot]);
  });
  return symbols;
}

void TextPipeline::visit_symbols(
    std::string_view line, const std::function<void(std::string_view)>& take) const {
  if (!protects())
    return segmenter_->visit(preparation_.apply(line), take);
  const std::string own = line_of_pieces(line);
  const PieceKinds& kinds = preparation_.protects();
  visit(own, pieces_in_slots(own, kinds, Slots(own, kinds)), take, [](size_t) {});
}

std::vector<int32_t> TextPipeline::encode(std::string_view line) const {
  return protects() ? encode(line, slots_of(line)) : encode_pieces(line, {});
}

std::vector<int32_t> TextPipeline::encode(std::string_view line, const Slots& slots) const {
  if (!protects())
    return encode_pieces(line, {});
  const std::string own = line_of_pieces(line);
  return encode_pieces(own, pieces_in_slots(own, preparation_.protects(), slots));
}

std::vector<int32_t> TextPipeline::encode_pieces(
    std::string_view line, std::span<const PieceInSlot> pieces) const {
  std::vector<int32_t> ids;
  visit(
      line,
      pieces,
      [&](std::string_view symbol) { ids.push_back(vocabulary_->text_id(symbol)); },
      [&](size_t slot) { ids.push_back(vocabulary_->slots().at(slot)); });
  return ids;
}

/// Words with stand-ins among them.
std::string TextPipeline::join_around_slots(const std::vector<int32_t>& ids) const {
  std::string text;
  const auto add = [&](const std::string& part) {
    if (!keeps_blanks() && !text.empty() && !part.empty() && text.back() != ' ')
      text += ' ';
    text += part;
  };
  std::vector<std::string> run;
  const auto end_run = [&] {
    if (!run.empty())
      add(without_stand_ins(segmenter_->join(std::exchange(run, {}))));
  };
  for (const int32_t id : ids) {
    if (const auto slot = vocabulary_->slot_of(id)) {
      end_run();
      if (*slot != kSlotJoin || !keeps_blanks())
        add(stand_in(*slot));
    } else if (const std::string& symbol = vocabulary_->symbol(id); is_text(id)) {
      run.push_back(symbol);
    }
  }
  end_run();
  return text;
}

LineInSlots TextPipeline::decode_pieces(const std::vector<int32_t>& ids, const Slots& slots) const {
  return fill_slots(preparation_.undo(join_around_slots(ids)), slots);
}

std::string TextPipeline::decode(const std::vector<int32_t>& ids, const Slots& slots) const {
  if (!vocabulary_->slots().empty())
    return decode_pieces(ids, slots).line;
  std::vector<std::string> symbols;
  for (int32_t id : ids) {
    const std::string& symbol = vocabulary_->symbol(id);
    if (is_text(id))
      symbols.push_back(symbol);
  }
  return preparation_.undo(segmenter_->join(symbols));
}

std::vector<ByteRange> TextPipeline::find_ranges(
    std::string_view text, std::span<const std::string> symbols, const Slots& slots) const {
  std::vector<std::string> surfaces;
  for (const std::string& symbol : symbols) {
    const auto slot = vocabulary_->slot_of(vocabulary_->id(symbol));
    if (slot && *slot == kSlotJoin)
      surfaces.emplace_back();
    else if (slot && *slot < slots.size())
      surfaces.emplace_back(slots.spelling(*slot));
    else
      surfaces.push_back(preparation_.undo_word(segmenter_->surface(symbol)));
  }
  return internal::find_ranges(text, surfaces);
}

std::vector<std::string> TextPipeline::symbols(const std::vector<int32_t>& ids) const {
  std::vector<std::string> symbols;
  for (const int32_t id : ids)
    symbols.push_back(vocabulary_->symbol(id));
  return symbols;
}

}  // namespace seqconv::internal
