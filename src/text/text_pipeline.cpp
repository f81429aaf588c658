#include "text/text_pipeline.h"

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

std::vector<std::string> TextPipeline::segment(std::string_view line) const {
  std::vector<std::string> symbols;
  visit_symbols(line, [&](std::string_view symbol) { symbols.emplace_back(symbol); });
  return symbols;
}

void TextPipeline::visit_symbols(
    std::string_view line, const std::function<void(std::string_view)>& take) const {
  segmenter_->visit(preparation_.apply(line), take);
}

std::vector<int32_t> TextPipeline::encode(std::string_view line) const {
  std::vector<int32_t> ids;
  visit_symbols(
      line, [&](std::string_view symbol) { ids.push_back(vocabulary_->text_id(symbol)); });
  return ids;
}

std::string TextPipeline::decode(const std::vector<int32_t>& ids) const {
  std::vector<std::string> symbols;
  for (int32_t id : ids) {
    const std::string& symbol = vocabulary_->symbol(id);
    if (is_text(id))
      symbols.push_back(symbol);
  }
  return preparation_.undo(segmenter_->join(symbols));
}

std::vector<ByteRange> TextPipeline::find_ranges(
    std::string_view text, std::span<const std::string> symbols) const {
  std::vector<std::string> surfaces;
  for (const std::string& symbol : symbols)
    surfaces.push_back(preparation_.undo_word(segmenter_->surface(symbol)));
  return internal::find_ranges(text, surfaces);
}

std::vector<std::string> TextPipeline::symbols(const std::vector<int32_t>& ids) const {
  std::vector<std::string> symbols;
  for (const int32_t id : ids)
    symbols.push_back(vocabulary_->symbol(id));
  return symbols;
}

}  // namespace seqconv::internal
