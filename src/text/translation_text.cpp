#include "seqconv/base/error.h"
#include "seqconv/base/files.h"
#include "seqconv/text/text_pipeline.h"
#include "text_side.h"

namespace seqconv {
namespace fs = std::filesystem;
namespace {

using Files = std::vector<std::string>;

/// The one dictionary of both sides that the options name, or null.
VocabularyPointer given_joined_vocabulary(const TextOptions& options) {
  const std::string& source = options.source_dictionary;
  const std::string& target = options.target_dictionary;
  VocabularyPointer vocabulary =
      given_vocabulary(source.empty() ? target : source);
  if (!source.empty() && !target.empty() &&
      vocabulary->to_text() != Vocabulary::load(target).to_text())
    fail_usage(
        "text.joined = true needs one dictionary, but text.source_dictionary "
        "('",
        source,
        "') and text.target_dictionary ('",
        target,
        "') differ");
  return vocabulary;
}

bool names_dictionaries(const TextOptions& options) {
  const bool source = !options.source_dictionary.empty();
  const bool target = !options.target_dictionary.empty();
  return options.joined ? source || target : source && target;
}

/// Names of the files of one side.
std::string file_names(const Json& side) {
  return side.at("dictionary").get<std::string>() + " " +
      side.value("model", std::string());
}

void load_sides(
    const fs::path& folder,
    const Json& text,
    TranslationText& loaded) {
  const Json& source = text.at("source");
  const Json& target = text.at("target");
  loaded.source = load_side(folder, loaded.options, source);
  if (loaded.options.joined) {
    SEQCONV_CHECK(
        file_names(source) == file_names(target),
        folder.string(),
        ": a joined vocabulary needs the same files on both sides, but got ",
        file_names(source),
        " and ",
        file_names(target));
    loaded.target = loaded.source;
  } else {
    loaded.target = load_side(folder, loaded.options, target);
  }
  const std::string where = folder.string();
  loaded.source_samples =
      check_samples(where + ", source side", *loaded.source, source);
  loaded.target_samples =
      check_samples(where + ", target side", *loaded.target, target);
}

}  // namespace

TranslationText TranslationText::create(
    const TextOptions& options,
    const std::vector<std::string>& source_files,
    const std::vector<std::string>& target_files) {
  if (!options.dictionary.empty())
    fail_usage(
        "text.dictionary = '",
        options.dictionary,
        "' is for language models, but this is a translation model, whose "
        "dictionaries are text.source_dictionary and text.target_dictionary");
  options.validate();
  const SegmenterPointer given = given_segmenter(options);
  SEQCONV_CHECK(
      (!source_files.empty() && !target_files.empty()) ||
          (given && names_dictionaries(options)),
      "text needs training files for both sides, but got ",
      source_files.size(),
      " source and ",
      target_files.size(),
      " target files");
  Files all_files = source_files;
  all_files.insert(all_files.end(), target_files.begin(), target_files.end());
  const auto make_side = [&](const Files& files, VocabularyPointer vocabulary) {
    const auto segmenter = given ? given : learn_segmenter(options, files);
    if (!vocabulary)
      vocabulary = build_vocabulary(
          options,
          count_symbols(segmenter, options.lowercase, files));
    return std::make_shared<const TextPipeline>(
        segmenter,
        vocabulary,
        options.lowercase);
  };
  TranslationText text;
  text.options = options;
  if (options.joined) {
    text.source = make_side(all_files, given_joined_vocabulary(options));
    text.target = text.source;
  } else {
    text.source =
        make_side(source_files, given_vocabulary(options.source_dictionary));
    text.target =
        make_side(target_files, given_vocabulary(options.target_dictionary));
  }
  text.source_samples = pick_samples(source_files);
  text.target_samples = pick_samples(target_files);
  return text;
}

Json TranslationText::save(const fs::path& folder) const {
  create_folder(folder);
  Json text = Json::object();
  text["subword"] = std::string(enum_name(options.subword));
  text["lowercase"] = options.lowercase;
  text["joined"] = options.joined;
  const bool joined = options.joined;
  text["source"] =
      save_side(folder, joined ? "" : "source.", *source, source_samples);
  text["target"] =
      save_side(folder, joined ? "" : "target.", *target, target_samples);
  return text;
}

TranslationText TranslationText::load(
    const fs::path& folder,
    const Json& text) {
  SEQCONV_CHECK(
      !text.contains("side"),
      folder.string(),
      ": the text of a translation model was wanted, but this is a language "
      "model's");
  TranslationText loaded;
  try {
    loaded.options.subword = parse_enum<Subword>(
        text.at("subword").get<std::string>(),
        "text.subword");
    loaded.options.lowercase = text.at("lowercase").get<bool>();
    loaded.options.joined = text.at("joined").get<bool>();
    load_sides(folder, text, loaded);
  } catch (const Json::exception& error) {
    fail_malformed(folder, error);
  }
  return loaded;
}

}  // namespace seqconv
