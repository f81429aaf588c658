#include "train/given_text.h"

#include <algorithm>
#include <array>

#include "base/files.h"
#include "base/json_fields.h"
#include "base/log.h"
#include "base/options.h"
#include "model/model_description.h"
#include "text/bpe.h"
#include "text/segmenter.h"

namespace seqconv::internal {
namespace {

/// Keys that learning reads, and nothing after it.
constexpr std::array<const char*, 7> kLearningKeys = {
    "subword_size",
    "sentencepiece_kind",
    "character_coverage",
    "sentencepiece_byte_fallback",
    "sentencepiece_user_symbols",
    "min_count",
    "max_vocabulary"};

/// Keys of files, which are compared by what they hold.
constexpr std::array<const char*, 5> kFileKeys = {
    "bpe_codes", "sentencepiece_model", "source_dictionary", "target_dictionary", "dictionary"};

template <class Keys>
bool is_one_of(const Keys& keys, const std::string& key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

template <class... Parts>
[[noreturn]] void fail_start(const std::string& from, const Parts&... parts) {
  fail_usage("cannot start from '", from, "', whose text the run takes over: ", parts...);
}

/// The text that the configuration wants. Keys that mean nothing for the model
/// are in no folder: they are as in `given`.
TextOptions wanted_text(const TrainConfig& config, const TextOptions& given) {
  TextOptions pieces = config.text;
  pieces.subword = given.subword;
  TextOptions wanted = config.text;
  wanted.subword_fallback = pieces.falls_back();
  if (config.task == Task::kLanguageModel)
    wanted.joined = given.joined;
  return wanted;
}

void check_keys(const TrainRequest& request, const TextOptions& given) {
  const Json wanted = write_options(wanted_text(request.config, given));
  const Json has = write_options(given);
  for (const auto& [key, value] : wanted.items()) {
    const bool compared = request.named_text.contains(key) && !is_one_of(kLearningKeys, key) &&
        !is_one_of(kFileKeys, key);
    if (compared && value != has[key])
      fail_start(
          request.init_from,
          "text.",
          key,
          " is ",
          value.dump(),
          " in the configuration and ",
          has[key].dump(),
          " in that model; leave the key out, or start from another model");
  }
}

void check_dictionary(const TrainRequest& request, const GivenSide& side) {
  if (side.file.empty())
    return;
  const Vocabulary named = Vocabulary::load(side.file);
  const Vocabulary& has = side.text.vocabulary();
  const auto symbol = [](const Vocabulary& vocabulary, int64_t id) {
    return id < vocabulary.size() ? concat("'", vocabulary.symbol(static_cast<int32_t>(id)), "'")
                                  : std::string("missing");
  };
  for (int64_t id = 0; id < std::max(named.size(), has.size()); ++id)
    if (symbol(named, id) != symbol(has, id))
      fail_start(
          request.init_from,
          side.key,
          " = '",
          side.file,
          "' is not its vocabulary: the symbol of id ",
          id,
          " is ",
          symbol(named, id),
          " there and ",
          symbol(has, id),
          " in the model");
}

void check_subwords(const TrainRequest& request, const TextPipeline& text) {
  const Segmenter& has = text.segmenter();
  const TextOptions& options = request.config.text;
  const auto other = [&](const char* key, const std::string& file) {
    fail_start(request.init_from, "text.", key, " = '", file, "' is another than the model's own");
  };
  // A model keeps the lines of codes, whatever their ends were.
  if (const std::string& file = options.bpe_codes;
      !file.empty() && Bpe::load(file).codes() != has.model())
    other("bpe_codes", file);
  if (const std::string& file = options.sentencepiece_model;
      !file.empty() && read_file(file) != has.model())
    other("sentencepiece_model", file);
}

/// The [text] that a model's run wrote down; an empty table where it is not
/// there, or what was written is not to be read.
Json text_of_run(const RootedPath& model) {
  const RootedPath file = find_model(model).folder / "training" / "config.toml";
  std::error_code none;
  if (!std::filesystem::exists(file.path(), none))
    return Json::object();
  try {
    const Json table = parse_toml(read_file(file), file.string());
    const Json& text = json_field(table, file.string(), "text");
    TextOptions checked;
    read_options(text, "text", checked);
    return text;
  } catch (const Error& error) {
    log_warning(
        "what the text of '", model.string(), "' was learned with is not known: ", error.what());
    return Json::object();
  }
}

void report_unused(const TrainRequest& request) {
  std::string unused;
  for (const std::string& key : request.named_text)
    if (is_one_of(kLearningKeys, key))
      unused += concat(unused.empty() ? "text." : ", text.", key);
  if (!unused.empty())
    log_info(
        "the text is that of '", request.init_from, "': nothing is learned, ", unused, " not used");
}

}  // namespace

Json with_learning_keys(const TrainRequest& request, Json text) {
  if (request.init_from.empty())
    return text;
  const Json given = write_options(request.config.text);
  const Json learned = text_of_run({request.init_from, request.links});
  for (const char* key : kLearningKeys)
    text[key] = learned.value(key, given[key]);
  for (const char* key : kFileKeys)
    text[key] = learned.value(key, given[key]);
  return text;
}

void check_given_text(
    const TrainRequest& request, const TextOptions& given, const std::vector<GivenSide>& sides) {
  check_keys(request, given);
  for (const GivenSide& side : sides) {
    check_dictionary(request, side);
    check_subwords(request, side.text);
  }
  report_unused(request);
}

}  // namespace seqconv::internal
