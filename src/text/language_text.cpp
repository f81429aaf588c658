#include "seqconv/text/language_text.h"

#include <algorithm>

#include "seqconv/base/error.h"
#include "seqconv/base/files.h"
#include "seqconv/base/options.h"
#include "seqconv/text/symbol_count.h"
#include "seqconv/text/unicode.h"
#include "text_side.h"

namespace seqconv {
namespace fs = std::filesystem;
namespace {

using Files = std::vector<std::string>;

bool is_unknown(const Vocabulary& vocabulary, std::string_view symbol) {
  return vocabulary.text_id(symbol) == kUnknownId;
}

/// Symbols of the training text.
struct SymbolTally {
  int64_t all = 0;
  int64_t unknown = 0;  ///< outside the vocabulary, <unk> among them
  int64_t spelled = 0;  ///< spelled <unk> by the text itself
};

SymbolTally tally(const WordCounts& counts, const Vocabulary& vocabulary) {
  SymbolTally sum;
  for (const auto& [symbol, count] : counts) {
    sum.all += count;
    if (!is_unknown(vocabulary, symbol))
      continue;
    sum.unknown += count;
    if (symbol == kUnknownSymbol)
      sum.spelled += count;
  }
  return sum;
}

/// The first of `symbols` that is unknown and not the text's own <unk>, or "".
std::string first_unknown(
    const Vocabulary& vocabulary,
    const std::vector<std::string>& symbols) {
  const auto found =
      std::find_if(symbols.begin(), symbols.end(), [&](const auto& symbol) {
        return symbol != kUnknownSymbol && is_unknown(vocabulary, symbol);
      });
  return found == symbols.end() ? std::string() : *found;
}

[[noreturn]] void fail_wrong_dictionary(
    const TextOptions& options,
    const TextPipeline& pipeline,
    const Files& files,
    const SymbolTally& symbols) {
  std::string first;
  std::string line;
  for (const std::string& file : files)
    for (LineReader reader(file); first.empty() && reader.next(line);)
      first = first_unknown(pipeline.vocabulary(), pipeline.segment(line));
  fail(
      options.dictionary,
      ": wrong dictionary for this text: ",
      symbols.unknown - symbols.spelled,
      " of ",
      symbols.all,
      " symbols are unknown (the first: '",
      first,
      "')");
}

void check_options(const TextOptions& options) {
  const bool source = !options.source_dictionary.empty();
  if (source || !options.target_dictionary.empty())
    fail_usage(
        source ? "text.source_dictionary = '" : "text.target_dictionary = '",
        source ? options.source_dictionary : options.target_dictionary,
        "' is for translation models, but this is a language model, whose "
        "dictionary is text.dictionary");
  options.validate();
  check_languages(options, {"language"});
}

/// What config.json says but for the side.
Json save_options(const LanguageText& text) {
  Json json = Json::object();
  save_common_options(text.options, json);
  save_language(text.options, "language", text.options.language, json);
  json["unknown"] = text.knows_unknown;
  return json;
}

}  // namespace

LanguageText LanguageText::create(
    const TextOptions& options,
    const std::vector<std::string>& files) {
  check_options(options);
  const Preparation preparation(options, options.language);
  const std::vector<TextFile> prepared = prepared_files(files, preparation);
  VocabularyPointer vocabulary = given_vocabulary(options.dictionary);
  SegmenterPointer segmenter = given_segmenter(options);
  SEQCONV_CHECK(
      !files.empty() || (vocabulary && segmenter),
      "the text of a language model needs training files, but got none");
  if (!segmenter)
    segmenter = learn_segmenter(options, prepared);
  WordCounts counts;
  if (!files.empty())
    counts = count_symbols(segmenter, prepared);
  if (!vocabulary)
    vocabulary = build_vocabulary(options, counts);
  LanguageText text;
  text.options = options;
  text.text =
      std::make_shared<const TextPipeline>(segmenter, vocabulary, preparation);
  const SymbolTally symbols = tally(counts, *vocabulary);
  const SymbolCount count{symbols.all, symbols.unknown - symbols.spelled};
  if (!options.dictionary.empty() && count.is_mostly_unknown())
    fail_wrong_dictionary(options, *text.text, files, symbols);
  text.knows_unknown = symbols.unknown > 0;
  text.samples = pick_samples(files);
  return text;
}

Json LanguageText::save(const fs::path& folder) const {
  create_folder(folder);
  Json json = save_options(*this);
  json["side"] = save_side(folder, "", *text, samples);
  return json;
}

LanguageText LanguageText::load(const fs::path& folder, const Json& text) {
  SEQCONV_CHECK(
      !text.contains("source"),
      folder.string(),
      ": the text of a language model was wanted, but this is a translation "
      "model's");
  LanguageText loaded;
  try {
    TextOptions& options = loaded.options;
    load_common_options(text, options);
    load_language(options, text, "language", options.language);
    loaded.knows_unknown = text.at("unknown").get<bool>();
    const Json& side = text.at("side");
    loaded.text = load_side(
        folder,
        options.subword,
        Preparation(options, options.language),
        side);
    loaded.samples = check_samples(folder.string(), *loaded.text, side);
  } catch (const Json::exception& error) {
    fail_malformed(folder, error);
  }
  return loaded;
}

std::string difference(const LanguageText& a, const LanguageText& b) {
  const std::string option = first_difference(save_options(a), save_options(b));
  return option.empty() ? side_difference(*a.text, *b.text) : option;
}

void check_known(
    const LanguageText& text,
    std::string_view line,
    const std::vector<int32_t>& ids,
    const std::string& where) {
  const bool unknown =
      std::find(ids.begin(), ids.end(), kUnknownId) != ids.end();
  if (text.knows_unknown || !unknown)
    return;
  std::string_view first = kUnknownSymbol;
  const std::vector<std::string> symbols = text.text->segment(line);
  for (auto symbol = symbols.rbegin(); symbol != symbols.rend(); ++symbol)
    if (is_unknown(text.text->vocabulary(), *symbol))
      first = *symbol;
  fail(
      where,
      where.empty() ? "" : ": ",
      "the symbol '",
      first,
      "' is not in the model's vocabulary, and the model has never seen <unk> "
      "in training");
}

}  // namespace seqconv
