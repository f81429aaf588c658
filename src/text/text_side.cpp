#include "text/text_side.h"

#include <algorithm>

#include "base/characters.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json_fields.h"

namespace seqconv::internal {
namespace fs = std::filesystem;
namespace {

constexpr size_t kSamples = 5;
constexpr size_t kLongestSample = 1000;  // bytes
constexpr const char* kText = "text";    // of config.json

SegmenterPointer read_segmenter(
    Subword subword, const std::string& model, const std::string& name) {
  switch (subword) {
    case Subword::kNone:
      return make_word_segmenter();
    case Subword::kBpe:
      return make_bpe_segmenter(Bpe::parse(model, name));
    case Subword::kSentencePiece:
      return make_sentencepiece_segmenter(model, name);
    case Subword::kCharacters:
      return make_character_segmenter();
    case Subword::kBytes:
      return make_byte_segmenter();
  }
  fail("unknown subword kind ", static_cast<int>(subword));
}

/// The name of the segmenter's file in a model folder; empty when none is
/// needed.
const char* model_file(Subword subword) {
  switch (subword) {
    case Subword::kNone:
    case Subword::kCharacters:
    case Subword::kBytes:
      return "";
    case Subword::kBpe:
      return "bpe.codes";
    case Subword::kSentencePiece:
      return "sentencepiece.model";
  }
  return "";
}

/// At most `bytes` bytes of a line, whole characters.
std::string start_of(std::string_view line, size_t bytes) {
  size_t end = std::min(bytes, line.size());
  while (end > 0 && end < line.size() && (static_cast<unsigned char>(line[end]) & 0xC0) == 0x80)
    --end;
  return std::string(line.substr(0, end));
}

Json save_samples(const TextPipeline& pipeline, const std::vector<std::string>& lines) {
  Json samples = Json::array();
  for (const std::string& line : lines)
    samples.push_back({{"line", line}, {"ids", pipeline.encode(line)}});
  return samples;
}

/// A file that the model's configuration names.
RootedPath inside(const RootedPath& folder, const std::string& name, const char* what) {
  const std::string outward = outward_name(name);
  SEQCONV_CHECK(
      outward.empty(),
      folder.string(),
      ": ",
      what,
      " must name a file inside the model folder, but got '",
      shorten(name),
      "': ",
      outward);
  return folder / name;
}

std::string list_ids(const std::vector<int32_t>& ids) {
  std::string list;
  for (int32_t id : ids)
    list += concat(list.empty() ? "" : " ", id);
  return list;
}

}  // namespace

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
          read_file(options.sentencepiece_model), options.sentencepiece_model);
    case Subword::kCharacters:
      return make_character_segmenter();
    case Subword::kBytes:
      return make_byte_segmenter();
  }
  fail("unknown subword kind ", static_cast<int>(options.subword));
}

SegmenterPointer fit(
    const TextOptions& options,
    const SegmenterPointer& segmenter,
    const VocabularyPointer& vocabulary) {
  if (!options.falls_back())
    return segmenter;
  return segmenter->within(
      [vocabulary](const std::string& symbol) { return vocabulary->has(symbol); });
}

VocabularyPointer given_vocabulary(const TextOptions& options, const std::string& file) {
  if (file.empty())
    return nullptr;
  auto vocabulary = std::make_shared<Vocabulary>(Vocabulary::load(file));
  if (!options.protect.empty())
    vocabulary->add_slots();
  return vocabulary;
}

std::vector<std::string> pick_samples(const std::vector<TextSource>& files) {
  std::vector<std::string> samples;
  std::string long_start;
  std::string line;
  int64_t number = 0;
  int64_t wanted = 1;
  for (const TextSource& file : files) {
    TextSourceReader reader(file);
    while (samples.size() < kSamples && reader.next(line)) {
      if (++number < wanted || is_blank(line))
        continue;
      if (line.size() > kLongestSample) {
        if (long_start.empty())
          long_start = start_of(line, kLongestSample);
        continue;
      }
      samples.push_back(line);
      wanted *= 10;
    }
  }
  if (samples.empty() && !long_start.empty())
    samples.push_back(long_start);
  return samples;
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
  if (const std::string name = model_file(segmenter.kind()); !name.empty()) {
    const std::string model = prefix + name;
    write_file_atomically(folder / model, segmenter.model());
    side["model"] = model;
  }
  side["samples"] = save_samples(pipeline, samples);
  return side;
}

std::shared_ptr<const TextPipeline> load_side(
    const RootedPath& folder,
    const TextOptions& options,
    const Preparation& preparation,
    const Json& side,
    const std::string& path) {
  const RootedPath dictionary =
      inside(folder, json_value<std::string>(side, path, "dictionary"), "text dictionary");
  std::string model;
  std::string name;
  if (*model_file(options.subword) != '\0') {
    const RootedPath file =
        inside(folder, json_value<std::string>(side, path, "model"), "text model");
    model = read_file(file);
    name = file.string();
  }
  const SegmenterPointer segmenter = read_segmenter(options.subword, model, name);
  const auto vocabulary =
      std::make_shared<Vocabulary>(Vocabulary::parse(read_file(dictionary), dictionary.string()));
  if (!options.protect.empty())
    vocabulary->need_slots(dictionary.string());
  return std::make_shared<TextPipeline>(
      fit(options, segmenter, vocabulary), vocabulary, preparation);
}

void save_common_options(const TextOptions& options, Json& text) {
  text["subword"] = std::string(enum_name(options.subword));
  text["lowercase"] = options.lowercase;
  if (options.falls_back())
    text["subword_fallback"] = true;
  for (const PieceKind kind : options.protect)
    text["protect"].push_back(std::string(enum_name(kind)));
  if (options.tokenizer == Tokenizer::kNone)
    return;
  text["tokenizer"] = std::string(enum_name(options.tokenizer));
  text["moses_escape"] = options.moses_escape;
  text["moses_split_dashes"] = options.moses_split_dashes;
}

void load_common_options(const Json& text, TextOptions& options) {
  const auto flag = [&](const char* key) { return json_value<bool>(text, kText, key); };
  options.subword =
      parse_enum<Subword>(json_value<std::string>(text, kText, "subword"), "text.subword");
  options.lowercase = flag("lowercase");
  options.subword_fallback = text.contains("subword_fallback") && flag("subword_fallback");
  if (text.contains("protect")) {
    for (const Json& kind : json_list(text, kText, "protect"))
      options.protect.push_back(parse_enum<PieceKind>(
          kind.is_string() ? kind.get<std::string>() : detail::show_json(kind), "text.protect"));
  }
  if (!text.contains("tokenizer"))
    return;
  options.tokenizer =
      parse_enum<Tokenizer>(json_value<std::string>(text, kText, "tokenizer"), "text.tokenizer");
  if (options.tokenizer == Tokenizer::kNone)
    return;
  options.moses_escape = flag("moses_escape");
  options.moses_split_dashes = flag("moses_split_dashes");
}

void save_language(
    const TextOptions& options, const char* key, const std::string& language, Json& text) {
  if (options.tokenizer != Tokenizer::kNone)
    text[key] = language;
}

void load_language(
    const TextOptions& options, const Json& text, const char* key, std::string& language) {
  if (options.tokenizer == Tokenizer::kNone)
    return;
  language = json_value<std::string>(text, kText, key);
  check_language(language, concat("text.", key));
}

std::string side_difference(const TextPipeline& a, const TextPipeline& b) {
  if (a.vocabulary().symbols() != b.vocabulary().symbols())
    return "dictionary";
  return a.segmenter().model() == b.segmenter().model() ? "" : "subword model";
}

std::string first_difference(const Json& a, const Json& b) {
  for (const auto& [x, y] : {std::pair(&a, &b), std::pair(&b, &a)})
    for (const auto& [key, value] : x->items())
      if (!y->contains(key) || (*y)[key] != value)
        return key;
  return "";
}

std::vector<std::string> check_samples(
    const std::string& where,
    const TextPipeline& pipeline,
    const Json& side,
    const std::string& path) {
  std::vector<std::string> lines;
  const std::string place = path + ".samples";
  for (const Json& sample : json_list(side, path, "samples")) {
    const auto line = json_value<std::string>(sample, place, "line");
    const std::vector<int32_t> recorded = json_ids(sample, place, "ids");
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

void fail_malformed(const RootedPath& folder, const UsageError& error) {
  fail(
      folder.string(), ": the text part of the model's configuration is malformed: ", error.what());
}

}  // namespace seqconv::internal
