#include "model/model_description.h"

#include <algorithm>

#include "base/atomic_file.h"
#include "base/files.h"
#include "base/json_fields.h"
#include "model/decoding_defaults.h"

namespace seqconv::internal {
namespace fs = std::filesystem;
namespace {

constexpr const char* kFormat = "seqconv-model";

/// Keys of the architecture that version 3 brought. Folders have them only
/// where they say something, so that older programs read the others.
constexpr const char* kLaterKeys[] = {
    "input_dim",
    "output_dim",
    "encoder.conv_dim",
    "encoder.norm",
    "encoder.ffn_dim",
    "encoder.positions",
    "encoder.max_positions",
    "encoder.short_conv",
    "decoder.conv_dim",
    "decoder.norm",
    "decoder.ffn_dim",
    "decoder.positions",
    "decoder.max_positions",
    "decoder.short_conv"};

/// Where a key such as "encoder.norm" stands in a table.
Json::json_pointer pointer_to(std::string key) {
  std::replace(key.begin(), key.end(), '.', '/');
  return Json::json_pointer("/" + key);
}

/// The first of these keys that an architecture has, or an older one with a
/// value that version 3 brought; "" for none.
std::string later_key(const Json& architecture) {
  for (const char* key : kLaterKeys)
    if (architecture.contains(pointer_to(key)))
      return key;
  const Json none(std::string(enum_name(PositionKind::kNone)));
  return architecture.value("positions", Json()) == none ? "positions = \"none\"" : "";
}

/// The architecture as config.json has it. `unused`: what models of the task
/// have not.
Json write_architecture(const ModelOptions& options, const char* unused) {
  Json table = write_options(options);
  const Json defaults = write_options(ModelOptions{});
  for (const char* key : kLaterKeys) {
    const Json::json_pointer at = pointer_to(key);
    if (table.at(at) == defaults.at(at))
      table.at(at.parent_pointer()).erase(at.back());
  }
  table.erase(unused);
  return table;
}

/// The lowest version whose programs read the model rightly, and the key that
/// older ones would not heed: those of version 1 know no tokenizer, those of
/// version 2 split no piece again, those of version 4 cut no source, those of version 5
/// protect nothing.
struct NeededVersion {
  int64_t version;
  std::string key;
};

NeededVersion version_of(
    const TextOptions& text, const Json& architecture, int64_t max_source_tokens) {
  if (!text.protect.empty())
    return {6, "text.protect"};
  if (max_source_tokens > 0)
    return {5, "text.max_source_tokens"};
  const std::string later = later_key(architecture);
  if (!later.empty())
    return {3, "architecture." + later};
  if (text.falls_back())
    return {3, "text.subword_fallback"};
  if (text.tokenizer != Tokenizer::kNone)
    return {2, "text.tokenizer"};
  return {1, ""};
}

/// How messages call a model of a task, and what to do with it.
struct TaskWords {
  const char* model;
  const char* verbs;
};

TaskWords words_of(Task task) {
  switch (task) {
    case Task::kTranslation:
      return {"a translation model", "seqconv translate and score"};
    case Task::kLanguageModel:
      return {"a language model", "seqconv perplexity and generate"};
  }
  fail("unknown task ", static_cast<int>(task));
}

/// Reads and checks one part of config.json. What would be a wrong command line
/// elsewhere is bad data here: Error that names the file.
template <class Read>
void read_part(const RootedPath& folder, const Read& read) {
  try {
    read();
  } catch (const UsageError& error) {
    fail((folder / "config.json").string(), ": ", error.what());
  }
}

Task task_in(const Json& config, const RootedPath& folder) {
  Task task = Task::kTranslation;
  read_part(folder, [&] {
    if (config.contains("task"))
      task = parse_enum<Task>(json_value<std::string>(config, "", "task"), "task");
  });
  return task;
}

void check_task(Task task, Task wanted, const RootedPath& folder) {
  SEQCONV_CHECK(
      task == wanted,
      "'",
      folder.string(),
      "' must hold ",
      words_of(wanted).model,
      ", but it holds ",
      words_of(task).model,
      ", which is for ",
      words_of(task).verbs);
}

/// A key that must be there; `file` is where.
const Json& wanted(const Json& config, const char* key, const std::string& file) {
  SEQCONV_CHECK(config.contains(key), file, ": the key '", key, "' is missing");
  return config[key];
}

/// True for the config.json of unfinished_config().
bool is_unfinished(const Json& config) {
  return config.value("unfinished", Json()) == Json(true);
}

/// Error for a format that this program does not read, newer ones by name.
void check_format(const Json& config, const std::string& file) {
  const Json& format = wanted(config, "format", file);
  SEQCONV_CHECK(
      format == kFormat,
      file,
      ": format must be \"",
      kFormat,
      "\", but got ",
      detail::show_json(format));
  const Json& version = wanted(config, "format_version", file);
  const bool whole = version.is_number_integer();
  SEQCONV_CHECK(
      !whole || version <= kModelFormatVersion,
      file,
      ": this program reads model folders of format_version 1 to ",
      kModelFormatVersion,
      ", but got ",
      detail::show_json(version),
      ": a later seqconv wrote it; open it with that one or a newer one");
  SEQCONV_CHECK(
      whole && version >= 1,
      file,
      ": format_version must be a whole number from 1 to ",
      kModelFormatVersion,
      ", but got ",
      detail::show_json(version));
}

/// config.json, an object of a format that this program reads.
Json read_config(const RootedPath& folder) {
  const RootedPath file = folder / "config.json";
  std::error_code none;
  SEQCONV_CHECK(
      fs::symlink_status(file, none).type() != fs::file_type::not_found,
      "'",
      folder.string(),
      "' is not a model folder: it has no config.json");
  Json config = parse_json(read_file(file), file.string());
  SEQCONV_CHECK(
      config.is_object(),
      file.string(),
      ": must be an object, but got ",
      detail::show_json(config));
  SEQCONV_CHECK(
      !is_unfinished(config),
      "'",
      folder.string(),
      "' is not a model folder yet: what writes it has not finished, or was ended before; then the "
      "same command writes it again");
  check_format(config, file.string());
  wanted(config, "architecture", file.string());
  wanted(config, "text", file.string());
  return config;
}

Json read_config(const RootedPath& folder, Task wanted) {
  Json config = read_config(folder);
  check_task(task_in(config, folder), wanted, folder);
  return config;
}

/// The nearest folder above `file` that holds a config.json.
fs::path folder_of_checkpoint(const fs::path& file) {
  fs::path folder = fs::absolute(file).lexically_normal().parent_path();
  for (int level = 0; level < 4; ++level) {
    if (fs::exists(folder / "config.json"))
      return folder;
    folder = folder.parent_path();
  }
  fail("'", file.string(), "' is not inside a model folder: no config.json beside or above it");
}

/// Error for a file that is no checkpoint by its name: an interrupted save
/// leaves parameters, whole ones at times, that nobody meant to keep.
void check_checkpoint_name(const fs::path& file) {
  if (file.extension() == ".safetensors")
    return;
  fail(
      "'",
      file.string(),
      unfinished_file(file) ? "' is no checkpoint but the unfinished file of a save"
                            : "' is no checkpoint by its name",
      ": a model folder, or a file *.safetensors inside one, was wanted");
}

Json begin_config(
    Task task, const TextOptions& text, Json architecture, int64_t max_source_tokens = 0) {
  Json config = Json::object();
  config["format"] = kFormat;
  config["format_version"] = version_of(text, architecture, max_source_tokens).version;
  config["task"] = std::string(enum_name(task));
  config["architecture"] = std::move(architecture);
  return config;
}

void write_config(const fs::path& folder, const Json& config) {
  write_file_atomically(folder / "config.json", config.dump(2) + "\n");
}

/// Error for what programs of the folder's version would misread or not know.
void check_version_says_all(
    const Json& config,
    const TextOptions& text,
    const RootedPath& folder,
    int64_t max_source_tokens = 0) {
  const NeededVersion needed = version_of(text, config["architecture"], max_source_tokens);
  SEQCONV_CHECK(
      config["format_version"] >= needed.version,
      (folder / "config.json").string(),
      ": ",
      needed.key,
      " needs format_version ",
      needed.version,
      ", but got ",
      detail::show_json(config["format_version"]));
}

}  // namespace

std::string unfinished_config() {
  return Json({{"format", kFormat}, {"unfinished", true}}).dump(2) + "\n";
}

VocabularySizes TranslationDescription::vocabulary() const {
  return {text.source->vocabulary().size(), text.target->vocabulary().size()};
}

VocabularySizes LanguageDescription::vocabulary() const {
  return {0, text.text->vocabulary().size()};
}

Json decoding_table(const DecodingOptions& decoding) {
  Json table = write_options(decoding);
  // Older programs, which do not know the key, read what does not need it.
  if (!decoding.stepwise_length_penalty)
    table.erase("stepwise_length_penalty");
  return table;
}

void write_decoding(const fs::path& folder, const DecodingOptions& decoding) {
  Json config = read_config(folder, Task::kTranslation);
  const Json table = decoding_table(decoding);
  if (config.value("decoding", Json()) == table)
    return;
  config["decoding"] = table;
  write_config(folder, config);
}

void write_alignment(const fs::path& folder, const AlignmentOptions& alignment) {
  Json config = read_config(folder, Task::kTranslation);
  config["alignment"] = write_options(alignment);
  write_config(folder, config);
}

void write_description(const TranslationDescription& model) {
  create_folder(model.folder);
  Json config = begin_config(
      Task::kTranslation,
      model.text.options,
      write_architecture(
          model.options, model.options.adaptive.softmax_cutoffs.empty() ? "adaptive" : ""),
      model.text.max_source_tokens);
  config["text"] = model.text.save(model.folder);
  config["decoding"] = decoding_table(model.decoding);
  if (model.documents.format != TextFormat::kText)
    config["documents"] = write_options(model.documents);
  if (model.alignment != AlignmentOptions())
    config["alignment"] = write_options(model.alignment);
  write_config(model.folder, config);
}

void write_description(const LanguageDescription& model) {
  create_folder(model.folder);
  Json config = begin_config(
      Task::kLanguageModel, model.text.options, write_architecture(model.options, "encoder"));
  config["text"] = model.text.save(model.folder);
  config["stream"] = write_options(model.stream);
  write_config(model.folder, config);
}

TranslationDescription read_translation_description(const RootedPath& folder) {
  const Json config = read_config(folder, Task::kTranslation);
  TranslationDescription model{.folder = folder.path()};
  read_part(folder, [&] {
    read_options(config["architecture"], "architecture", model.options);
    model.options.validate("architecture");
    if (config.contains("decoding")) {
      read_options(config["decoding"], "decoding", model.decoding);
      model.decoding.check_values("decoding");
    }
    if (config.contains("documents"))
      read_options(config["documents"], "documents", model.documents);
    if (config.contains("alignment"))
      read_options(config["alignment"], "alignment", model.alignment);
    model.alignment.resolve(model.options.decoder.layers, model.options.decoder.heads);
  });
  model.text = TranslationText::load(folder, config["text"]);
  read_part(
      folder, [&] { check_vocabulary(model.options, Task::kTranslation, model.vocabulary()); });
  check_version_says_all(config, model.text.options, folder, model.text.max_source_tokens);
  return model;
}

LanguageDescription read_language_description(const RootedPath& folder) {
  const Json config = read_config(folder, Task::kLanguageModel);
  LanguageDescription model{.folder = folder.path()};
  read_part(folder, [&] {
    read_options(config["architecture"], "architecture", model.options);
    model.options.validate("architecture", Task::kLanguageModel);
    if (config.contains("stream")) {
      read_options(config["stream"], "stream", model.stream);
      model.stream.validate("stream");
    }
  });
  model.text = LanguageText::load(folder, config["text"]);
  read_part(
      folder, [&] { check_vocabulary(model.options, Task::kLanguageModel, model.vocabulary()); });
  check_version_says_all(config, model.text.options, folder);
  return model;
}

Task task_of_model(const RootedPath& folder) {
  return task_in(read_config(folder), folder);
}

ModelFiles find_model(const RootedPath& path) {
  std::error_code error;
  SEQCONV_CHECK(
      fs::exists(path, error), "no model '", path.string(), "': there is no such file or folder");
  ModelFiles files{path, path / "model.safetensors", {}};
  if (!fs::is_directory(path, error)) {
    check_checkpoint_name(path);
    files = {{folder_of_checkpoint(path), path.links()}, path, {}};
  }
  files.config = read_config(files.folder);
  return files;
}

}  // namespace seqconv::internal
