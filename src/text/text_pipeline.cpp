#include "seqconv/text/text_pipeline.h"

#include <algorithm>

#include "seqconv/base/error.h"
#include "seqconv/text/segmenter.h"
#include "seqconv/text/unicode.h"

namespace seqconv {
namespace {

template <class T>
void need_range(
    bool holds,
    const std::string& key,
    const char* range,
    const T& value) {
  if (!holds)
    fail_usage(key, " must be ", range, ", but got ", value);
}

/// The key of a dictionary when none is left to build, else null.
const char* given_dictionary(const TextOptions& options) {
  if (!options.dictionary.empty())
    return "dictionary";
  const bool source = !options.source_dictionary.empty();
  const bool target = !options.target_dictionary.empty();
  if (options.joined ? source || target : source && target)
    return source ? "source_dictionary" : "target_dictionary";
  return nullptr;
}

/// UsageError when a vocabulary that nothing is left out of has limits.
template <class Key>
void check_limits(const TextOptions& options, const Key& key) {
  if (options.min_count == 1 && options.max_vocabulary == 0)
    return;
  const std::string limit =
      key(options.min_count != 1 ? "min_count" : "max_vocabulary");
  if (const char* dictionary = given_dictionary(options))
    fail_usage(
        limit,
        " has no effect with ",
        key(dictionary),
        ": the dictionary is taken as it is");
  if (options.subword == Subword::kBytes)
    fail_usage(
        limit,
        " has no effect with ",
        key("subword"),
        " = 'bytes': its vocabulary is all 256 bytes");
}

}  // namespace

void TextOptions::validate(const std::string& path) const {
  const auto key = [&](const char* name) {
    return path.empty() ? std::string(name) : path + "." + name;
  };
  const auto check_file =
      [&](const char* file_key, const std::string& file, Subword wanted) {
        if (!file.empty() && subword != wanted)
          fail_usage(
              key(file_key),
              " needs ",
              key("subword"),
              concat(" = '", enum_name(wanted)),
              concat("', but that is '", enum_name(subword), "'"));
      };
  check_file("bpe_codes", bpe_codes, Subword::kBpe);
  check_file(
      "sentencepiece_model",
      sentencepiece_model,
      Subword::kSentencePiece);
  need_range(
      subword_size >= 1 && subword_size <= 1'000'000,
      key("subword_size"),
      "from 1 to 1000000",
      subword_size);
  need_range(
      character_coverage >= 0.98 && character_coverage <= 1,
      key("character_coverage"),
      "from 0.98 to 1",
      character_coverage);
  need_range(min_count >= 1, key("min_count"), ">= 1", min_count);
  need_range(
      max_vocabulary == 0 || max_vocabulary > 4,
      key("max_vocabulary"),
      "0 (no limit) or > 4, as four symbols are special",
      max_vocabulary);
  check_limits(*this, key);
}

TextPipeline::TextPipeline(
    std::shared_ptr<const Segmenter> segmenter,
    std::shared_ptr<const Vocabulary> vocabulary,
    bool lowercase)
    : segmenter_(std::move(segmenter)),
      vocabulary_(std::move(vocabulary)),
      lowercase_(lowercase) {}

std::vector<std::string> TextPipeline::segment(std::string_view line) const {
  std::vector<std::string> symbols;
  visit_symbols(line, [&](std::string_view symbol) {
    symbols.emplace_back(symbol);
  });
  return symbols;
}

void TextPipeline::visit_symbols(
    std::string_view line,
    const std::function<void(std::string_view)>& take) const {
  std::string clean = clean_line(line);
  if (lowercase_)
    clean = to_lower(clean);
  segmenter_->visit(clean, take);
}

std::vector<int32_t> TextPipeline::encode(std::string_view line) const {
  std::vector<int32_t> ids;
  visit_symbols(line, [&](std::string_view symbol) {
    ids.push_back(std::max(vocabulary_->id(symbol), Vocabulary::kUnknown));
  });
  return ids;
}

std::string TextPipeline::decode(const std::vector<int32_t>& ids) const {
  std::vector<std::string> symbols;
  for (int32_t id : ids) {
    const std::string& symbol = vocabulary_->symbol(id);
    if (id >= Vocabulary::kUnknown)
      symbols.push_back(symbol);
  }
  return segmenter_->join(symbols);
}

std::string TextPipeline::symbols(const std::vector<int32_t>& ids) const {
  std::string text;
  for (int32_t id : ids) {
    if (!text.empty())
      text += ' ';
    text += vocabulary_->symbol(id);
  }
  return text;
}

}  // namespace seqconv
