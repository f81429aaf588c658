#include "text/language_text.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/json_fields.h"
#include "base/options.h"
#include "text/text_side.h"

namespace seqconv::internal {
namespace fs = std::filesystem;
namespace {

/// Writes what config.json says but for the side.
Json save_options(const LanguageText& text) {
  Json json = Json::object();
  save_common_options(text.options, json);
  save_language(text.options, "language", text.options.language, json);
  json["unknown"] = text.knows_unknown;
  return json;
}

}  // namespace

void check_language_options(const TextOptions& options) {
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

LanguageText LanguageText::given(const TextOptions& options) {
  check_language_options(options);
  const VocabularyPointer vocabulary = given_vocabulary(options, options.dictionary);
  const SegmenterPointer segmenter = given_segmenter(options);
  SEQCONV_CHECK(
      vocabulary && segmenter,
      "the text of a language model needs training files, or its dictionary and subword model");
  LanguageText text;
  text.options = options;
  text.text = std::make_shared<const TextPipeline>(
      fit(options, segmenter, vocabulary), vocabulary, Preparation(options, options.language));
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
  std::string first;
  text.text->visit_symbols(line, [&](std::string_view symbol) {
    if (first.empty() && text.text->vocabulary().text_id(symbol) == kUnknownId)
      first = symbol;
  });
  if (first.empty())
    first = kUnknownSymbol;
  fail(
      where,
      where.empty() ? "" : ": ",
      "the symbol '",
      first,
      "' is not in the model's vocabulary, and the model has never seen <unk> in training");
}

}  // namespace seqconv::internal
