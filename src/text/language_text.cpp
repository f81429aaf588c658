#include "text/language_text.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/json_fields.h"
#include "base/options.h"
#include "text/symbol_count.h"
#include "text/text_side.h"
#include "text/unicode.h"

namespace seqconv::internal {
namespace fs = std::filesystem;
namespace {

using Files = std::vector<TextSource>;

/// Symbols of the training text, those that the vocabulary lacks as unknown.
SymbolCount count_missing(const WordCounts& counts, const Vocabulary& vocabulary) {
  SymbolCount sum;
  for (const auto& [symbol, count] : counts)
    sum += {count, vocabulary.has(symbol) ? 0 : count};
  return sum;
}

/// The first symbol of the files that the vocabulary lacks.
std::string first_missing(const TextPipeline& pipeline, const Files& files) {
  std::string line;
  for (const TextSource& file : files)
    for (TextSourceReader reader(file); reader.next(line);)
      for (std::string& symbol : pipeline.segment(line))
        if (!pipeline.vocabulary().has(symbol))
          return std::move(symbol);
  return {};
}

/// Error when the dictionary lacks half of the text's symbols or more. They are
/// those of a segmenter that does not fall back, as any dictionary of the same
/// script would do for characters.
void check_dictionary(
    const TextOptions& options,
    const TextPipeline& pipeline,
    const WordCounts& counts,
    const Files& files) {
  const SymbolCount sum = count_missing(counts, pipeline.vocabulary());
  if (sum.is_mostly_unknown())
    fail(
        options.dictionary,
        ": wrong dictionary for this text: ",
        sum.unknown,
        " of ",
        sum.symbols,
        " symbols are unknown (the first: '",
        first_missing(pipeline, files),
        "')");
}

/// Learns what a given dictionary and a segmenter make of the files.
LearnedSide take_dictionary(
    const TextOptions& options,
    const SegmenterPointer& segmenter,
    const VocabularyPointer& vocabulary,
    const std::vector<TextFile>& prepared,
    const Files& files) {
  LearnedSide side{fit(options, segmenter, vocabulary), vocabulary, {}};
  if (files.empty())
    return side;
  side.counts = count_symbols(segmenter, prepared);
  const TextPipeline pipeline(segmenter, vocabulary, prepared.front().preparation);
  check_dictionary(options, pipeline, side.counts, files);
  if (options.falls_back() && lacks_symbols(*vocabulary, side.counts))
    side.counts = count_symbols(side.segmenter, prepared);
  return side;
}

void check_options(const TextOptions& options) {
  const bool source = !options.source_dictionary.empty();
  if (source || !options.target_dictionary.empty())
    fail_usage(
        source ? "text.source_dictionary = '" : "text.target_dictionary = '",
        source ? options.source_dictionary : options.target_dictionary,
        "' is for translation models, but this is a language model, whose dictionary is "
        "text.dictionary");
  options.validate();
  check_languages(options, {"language"});
}

/// Writes what config.json says but for the side.
Json save_options(const LanguageText& text) {
  Json json = Json::object();
  save_common_options(text.options, json);
  save_language(text.options, "language", text.options.language, json);
  json["unknown"] = text.knows_unknown;
  return json;
}

}  // namespace

LanguageText LanguageText::create(
    const TextOptions& options, const std::vector<TextSource>& files) {
  check_options(options);
  const Preparation preparation(options, options.language);
  const std::vector<TextFile> prepared = prepared_files(files, preparation);
  const VocabularyPointer vocabulary = given_vocabulary(options.dictionary);
  SegmenterPointer segmenter = given_segmenter(options);
  SEQCONV_CHECK(
      !files.empty() || (vocabulary && segmenter),
      "the text of a language model needs training files, but got none");
  if (!segmenter)
    segmenter = learn_segmenter(options, prepared);
  const LearnedSide side = vocabulary
      ? take_dictionary(options, segmenter, vocabulary, prepared, files)
      : learn_side(options, segmenter, prepared);
  LanguageText text;
  text.options = options;
  text.text = std::make_shared<const TextPipeline>(side.segmenter, side.vocabulary, preparation);
  text.knows_unknown = side.counts.contains(std::string(kUnknownSymbol)) ||
      lacks_symbols(*side.vocabulary, side.counts);
  text.samples = pick_samples(files);
  return text;
}

Json LanguageText::save(const fs::path& folder) const {
  create_folder(folder);
  Json json = save_options(*this);
  json["side"] = save_side(folder, "", *text, samples);
  return json;
}

LanguageText LanguageText::load(const RootedPath& folder, const Json& text) {
  SEQCONV_CHECK(
      !text.contains("source"),
      folder.string(),
      ": the text of a language model was wanted, but this is a translation model's");
  LanguageText loaded;
  try {
    TextOptions& options = loaded.options;
    load_common_options(text, options);
    load_language(options, text, "language", options.language);
    loaded.knows_unknown = json_value<bool>(text, "text", "unknown");
    const Json& side = json_field(text, "text", "side");
    loaded.text =
        load_side(folder, options, Preparation(options, options.language), side, "text.side");
    loaded.samples = check_samples(folder.string(), *loaded.text, side, "text.side");
  } catch (const UsageError& error) {
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
  const bool unknown = std::find(ids.begin(), ids.end(), kUnknownId) != ids.end();
  if (text.knows_unknown || !unknown)
    return;
  std::string_view first = kUnknownSymbol;
  const std::vector<std::string> symbols = text.text->segment(line);
  for (auto symbol = symbols.rbegin(); symbol != symbols.rend(); ++symbol)
    if (text.text->vocabulary().text_id(*symbol) == kUnknownId)
      first = *symbol;
  fail(
      where,
      where.empty() ? "" : ": ",
      "the symbol '",
      first,
      "' is not in the model's vocabulary, and the model has never seen <unk> in training");
}

}  // namespace seqconv::internal
