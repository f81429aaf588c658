#include <limits>

#include "base/error.h"
#include "base/files.h"
#include "base/json_fields.h"
#include "base/options.h"
#include "text/text_pipeline.h"
#include "text/text_side.h"

namespace seqconv::internal {
namespace fs = std::filesystem;
namespace {

constexpr const char* kSourceCut = "max_source_tokens";

bool names_dictionaries(const TextOptions& options) {
  const bool source = !options.source_dictionary.empty();
  const bool target = !options.target_dictionary.empty();
  return options.joined ? source || target : source && target;
}

/// Names of the files of one side.
std::string file_names(const Json& side, const std::string& path) {
  return json_value<std::string>(side, path, "dictionary") + " " +
      (side.contains("model") ? json_value<std::string>(side, path, "model") : std::string());
}

/// Writes what config.json says of the options, but for `joined`, and of the
/// cut.
Json save_options(const TranslationText& saved) {
  const TextOptions& options = saved.options;
  Json text = Json::object();
  save_common_options(options, text);
  save_language(options, "source_language", options.source_language, text);
  save_language(options, "target_language", options.target_language, text);
  if (saved.max_source_tokens > 0)
    text[kSourceCut] = saved.max_source_tokens;
  return text;
}

/// Reads what save_options said of the cut, in the folder's text.
int64_t load_source_cut(const RootedPath& folder, const Json& text) {
  if (!text.contains(kSourceCut))
    return 0;
  const Json& most = text[kSourceCut];
  SEQCONV_CHECK(
      most.is_number_unsigned() && most >= 2 && most <= std::numeric_limits<int32_t>::max(),
      folder.string(),
      ": text.",
      kSourceCut,
      " must be a whole number from 2 on, but got ",
      detail::show_json(most));
  return most.get<int64_t>();
}

void load_sides(const RootedPath& folder, const Json& text, TranslationText& loaded) {
  const std::string source_key = "text.source", target_key = "text.target";
  const Json& source = json_field(text, "text", "source");
  const Json& target = json_field(text, "text", "target");
  const TextOptions& options = loaded.options;
  const Preparation source_lines(options, options.source_language);
  const Preparation target_lines(options, options.target_language);
  loaded.source = load_side(folder, options, source_lines, source, source_key);
  if (options.joined) {
    SEQCONV_CHECK(
        file_names(source, source_key) == file_names(target, target_key),
        folder.string(),
        ": a joined vocabulary needs the same files on both sides, but got ",
        file_names(source, source_key),
        " and ",
        file_names(target, target_key));
    loaded.target = other_side(loaded.source, target_lines);
  } else {
    loaded.target = load_side(folder, options, target_lines, target, target_key);
  }
  const std::string where = folder.string();
  loaded.source_samples =
      check_samples(where + ", source side", *loaded.source, source, source_key);
  loaded.target_samples =
      check_samples(where + ", target side", *loaded.target, target, target_key);
}

}  // namespace

void check_translation_options(const TextOptions& options) {
  if (!options.dictionary.empty())
    fail_usage(
        "text.dictionary = '",
        options.dictionary,
        "' is for language models, but this is a translation model, whose dictionaries are "
        "text.source_dictionary and text.target_dictionary");
  options.validate();
  check_languages(options, {"source_language", "target_language"});
}

VocabularyPointer given_joined_vocabulary(const TextOptions& options) {
  const std::string& source = options.source_dictionary;
  const std::string& target = options.target_dictionary;
  VocabularyPointer vocabulary = given_vocabulary(options, source.empty() ? target : source);
  if (!source.empty() && !target.empty() &&
      vocabulary->to_text() != given_vocabulary(options, target)->to_text())
    fail_usage(
        "text.joined = true needs one dictionary, but text.source_dictionary ('",
        source,
        "') and text.target_dictionary ('",
        target,
        "') differ");
  return vocabulary;
}

std::shared_ptr<const TextPipeline> other_side(
    const std::shared_ptr<const TextPipeline>& side, const Preparation& preparation) {
  if (!preparation.is_undone())
    return side;
  return std::make_shared<const TextPipeline>(side->with(preparation));
}

TranslationText TranslationText::given(const TextOptions& options) {
  check_translation_options(options);
  const SegmenterPointer segmenter = given_segmenter(options);
  SEQCONV_CHECK(
      segmenter && names_dictionaries(options),
      "text needs training files, or its dictionaries and subword model");
  const auto make_side = [&](const VocabularyPointer& vocabulary, const std::string& language) {
    return std::make_shared<const TextPipeline>(
        fit(options, segmenter, vocabulary), vocabulary, Preparation(options, language));
  };
  TranslationText text;
  text.options = options;
  if (options.joined) {
    text.source = make_side(given_joined_vocabulary(options), options.source_language);
    text.target = other_side(text.source, Preparation(options, options.target_language));
  } else {
    text.source =
        make_side(given_vocabulary(options, options.source_dictionary), options.source_language);
    text.target =
        make_side(given_vocabulary(options, options.target_dictionary), options.target_language);
  }
  return text;
}

Json TranslationText::save(const fs::path& folder) const {
  create_folder(folder);
  Json text = save_options(*this);
  text["joined"] = options.joined;
  const bool joined = options.joined;
  text["source"] = save_side(folder, joined ? "" : "source.", *source, source_samples);
  text["target"] = save_side(folder, joined ? "" : "target.", *target, target_samples);
  return text;
}

TranslationText TranslationText::load(const RootedPath& folder, const Json& text) {
  SEQCONV_CHECK(
      !text.contains("side"),
      folder.string(),
      ": the text of a translation model was wanted, but this is a language model's");
  TranslationText loaded;
  try {
    TextOptions& options = loaded.options;
    load_common_options(text, options);
    load_language(options, text, "source_language", options.source_language);
    load_language(options, text, "target_language", options.target_language);
    options.joined = json_value<bool>(text, "text", "joined");
    loaded.max_source_tokens = load_source_cut(folder, text);
    load_sides(folder, text, loaded);
  } catch (const UsageError& error) {
    fail_malformed(folder, error);
  }
  return loaded;
}

std::string difference(const TranslationText& a, const TranslationText& b) {
  const std::string option = first_difference(save_options(a), save_options(b));
  if (!option.empty())
    return option;
  if (const auto found = side_difference(*a.source, *b.source); !found.empty())
    return "source " + found;
  const std::string found = side_difference(*a.target, *b.target);
  return found.empty() ? "" : "target " + found;
}

}  // namespace seqconv::internal
