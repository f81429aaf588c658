#include <unordered_map>

#include "seqconv/base/error.h"
#include "seqconv/base/files.h"
#include "seqconv/text/bpe_trainer.h"
#include "seqconv/text/segmenter.h"
#include "seqconv/text/text_pipeline.h"
#include "seqconv/text/unicode.h"

namespace seqconv {
namespace fs = std::filesystem;
namespace {

using Files = std::vector<std::string>;
using SegmenterPointer = std::shared_ptr<const Segmenter>;
using VocabularyPointer = std::shared_ptr<const Vocabulary>;

constexpr size_t kSamples = 5;
constexpr size_t kLongestSample = 1000;  // bytes

SegmenterPointer read_segmenter(
    Subword subword,
    const std::string& model,
    const std::string& name) {
  switch (subword) {
    case Subword::kNone:
      return make_word_segmenter();
    case Subword::kBpe:
      return make_bpe_segmenter(Bpe::parse(model, name));
    case Subword::kSentencePiece:
      return make_sentencepiece_segmenter(model, name);
  }
  fail("unknown subword kind ", static_cast<int>(subword));
}

/// The segmenter that the options name, or null when it must be learned.
SegmenterPointer given_segmenter(const TextOptions& options) {
  switch (options.subword) {
    case Subword::kNone:
      return make_word_segmenter();
    case Subword::kBpe:
      if (options.bpe_codes.empty())
        return nullptr;
      return make_bpe_segmenter(Bpe::load(options.bpe_codes));
    case Subword::kSentencePiece:
      if (options.sentencepiece_model.empty())
        return nullptr;
      return make_sentencepiece_segmenter(
          read_file(options.sentencepiece_model),
          options.sentencepiece_model);
  }
  fail("unknown subword kind ", static_cast<int>(options.subword));
}

/// How often each symbol comes in the files.
std::unordered_map<std::string, int64_t> count_symbols(
    const SegmenterPointer& segmenter,
    bool lowercase,
    const Files& files) {
  const TextPipeline pipeline(segmenter, nullptr, lowercase);
  std::unordered_map<std::string, int64_t> counts;
  std::string line;
  for (const std::string& file : files) {
    LineReader reader(file);
    while (reader.next(line))
      for (std::string& symbol : pipeline.segment(line))
        ++counts[std::move(symbol)];
  }
  SEQCONV_CHECK(
      !counts.empty(),
      "a vocabulary needs text, but '",
      files.front(),
      files.size() > 1 ? "' and the other files hold" : "' holds",
      " no line that is not blank");
  return counts;
}

SegmenterPointer learn_segmenter(
    const TextOptions& options,
    const Files& files) {
  if (options.subword == Subword::kBpe) {
    const WordCounts words =
        count_symbols(make_word_segmenter(), options.lowercase, files);
    return make_bpe_segmenter(
        Bpe::parse(learn_bpe(words, options.subword_size), "learned codes"));
  }
  const SentencePieceTraining training{
      options.subword_size,
      options.sentencepiece_kind,
      options.character_coverage,
      options.lowercase};
  return make_sentencepiece_segmenter(
      train_sentencepiece(files, training),
      "trained model");
}

VocabularyPointer build_vocabulary(
    const TextOptions& options,
    const SegmenterPointer& segmenter,
    const Files& files) {
  const auto counts = count_symbols(segmenter, options.lowercase, files);
  return std::make_shared<Vocabulary>(Vocabulary::build(
      {counts.begin(), counts.end()},
      options.min_count,
      options.max_vocabulary));
}

VocabularyPointer given_vocabulary(const std::string& file) {
  if (file.empty())
    return nullptr;
  return std::make_shared<Vocabulary>(Vocabulary::load(file));
}

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

/// Lines 1, 10, 100, ... of the text, or the next ones that are neither blank
/// nor long.
std::vector<std::string> pick_samples(const Files& files) {
  std::vector<std::string> samples;
  std::string line;
  int64_t number = 0;
  int64_t wanted = 1;
  for (const std::string& file : files) {
    LineReader reader(file);
    while (samples.size() < kSamples && reader.next(line)) {
      if (++number < wanted || line.size() > kLongestSample ||
          split_words(line).empty())
        continue;
      samples.push_back(line);
      wanted *= 10;
    }
  }
  return samples;
}

Json save_samples(
    const TextPipeline& pipeline,
    const std::vector<std::string>& lines) {
  Json samples = Json::array();
  for (const std::string& line : lines)
    samples.push_back({{"line", line}, {"ids", pipeline.encode(line)}});
  return samples;
}

const char* model_file(Subword subword) {
  switch (subword) {
    case Subword::kNone:
      return "";
    case Subword::kBpe:
      return "bpe.codes";
    case Subword::kSentencePiece:
      return "sentencepiece.model";
  }
  return "";
}

Json save_side(
    const fs::path& folder,
    const std::string& prefix,
    const TextPipeline& pipeline,
    const std::vector<std::string>& samples) {
  Json side = Json::object();
  const std::string dictionary = prefix + "dict.txt";
  write_file_atomically(folder / dictionary, pipeline.vocabulary().to_text());
  side["dictionary"] = dictionary;
  const Segmenter& segmenter = pipeline.segmenter();
  if (segmenter.kind() != Subword::kNone) {
    const std::string model = prefix + model_file(segmenter.kind());
    write_file_atomically(folder / model, segmenter.model());
    side["model"] = model;
  }
  side["samples"] = save_samples(pipeline, samples);
  return side;
}

/// The path of a file that the model's configuration names.
fs::path inside(const fs::path& folder, const Json& name, const char* key) {
  const fs::path file(name.get<std::string>());
  bool stays = !file.empty() && !file.has_root_path();
  for (const fs::path& part : file)
    stays = stays && part != "..";
  SEQCONV_CHECK(
      stays,
      folder.string(),
      ": ",
      key,
      " must name a file inside the model folder, but got '",
      file.string(),
      "'");
  return folder / file;
}

std::string list_ids(const std::vector<int32_t>& ids) {
  std::string list;
  for (int32_t id : ids)
    list += concat(list.empty() ? "" : " ", id);
  return list;
}

std::vector<std::string> check_samples(
    const std::string& where,
    const TextPipeline& pipeline,
    const Json& samples) {
  std::vector<std::string> lines;
  for (const Json& sample : samples) {
    const auto line = sample.at("line").get<std::string>();
    const auto recorded = sample.at("ids").get<std::vector<int32_t>>();
    const std::vector<int32_t> ids = pipeline.encode(line);
    SEQCONV_CHECK(
        ids == recorded,
        where,
        ": wrong vocabulary for this model: the sample '",
        line,
        "' encodes to ",
        list_ids(ids),
        ", but ",
        list_ids(recorded),
        " was recorded");
    lines.push_back(line);
  }
  return lines;
}

std::shared_ptr<const TextPipeline> load_pipeline(
    const fs::path& folder,
    const TextOptions& options,
    const Json& side) {
  const fs::path dictionary =
      inside(folder, side.at("dictionary"), "text dictionary");
  SegmenterPointer segmenter = make_word_segmenter();
  if (options.subword != Subword::kNone) {
    const fs::path model = inside(folder, side.at("model"), "text model");
    segmenter =
        read_segmenter(options.subword, read_file(model), model.string());
  }
  return std::make_shared<TextPipeline>(
      std::move(segmenter),
      std::make_shared<Vocabulary>(Vocabulary::load(dictionary)),
      options.lowercase);
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
  loaded.source = load_pipeline(folder, loaded.options, source);
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
    loaded.target = load_pipeline(folder, loaded.options, target);
  }
  const std::string where = folder.string();
  loaded.source_samples = check_samples(
      where + ", source side",
      *loaded.source,
      source.at("samples"));
  loaded.target_samples = check_samples(
      where + ", target side",
      *loaded.target,
      target.at("samples"));
}

}  // namespace

TranslationText TranslationText::create(
    const TextOptions& options,
    const std::vector<std::string>& source_files,
    const std::vector<std::string>& target_files) {
  options.validate();
  SEQCONV_CHECK(
      !source_files.empty() && !target_files.empty(),
      "text needs training files for both sides, but got ",
      source_files.size(),
      " source and ",
      target_files.size(),
      " target files");
  Files all_files = source_files;
  all_files.insert(all_files.end(), target_files.begin(), target_files.end());
  const SegmenterPointer given = given_segmenter(options);
  const auto make_side = [&](const Files& files, VocabularyPointer vocabulary) {
    const auto segmenter = given ? given : learn_segmenter(options, files);
    if (!vocabulary)
      vocabulary = build_vocabulary(options, segmenter, files);
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
  TranslationText loaded;
  try {
    loaded.options.subword = parse_enum<Subword>(
        text.at("subword").get<std::string>(),
        "text.subword");
    loaded.options.lowercase = text.at("lowercase").get<bool>();
    loaded.options.joined = text.at("joined").get<bool>();
    load_sides(folder, text, loaded);
  } catch (const Json::exception& error) {
    fail(
        folder.string(),
        ": the text part of the model's configuration is malformed: ",
        error.what());
  }
  return loaded;
}

}  // namespace seqconv
