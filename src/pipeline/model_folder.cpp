#include "seqconv/pipeline/model_folder.h"

#include "seqconv/base/files.h"
#include "seqconv/pipeline/parameters.h"

namespace seqconv {
namespace fs = std::filesystem;
namespace {

constexpr const char* kFormat = "seqconv-model";
constexpr int64_t kFormatVersion = 1;

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

void check_task(const Json& config, Task wanted, const fs::path& folder) {
  const std::string key = (folder / "config.json").string() + ": task";
  const Json name =
      config.value("task", Json(std::string(enum_name(Task::kTranslation))));
  SEQCONV_CHECK(
      name.is_string(),
      key,
      " must be a string, but got ",
      name.dump());
  const Task task = parse_enum<Task>(name.get<std::string>(), key);
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

Json read_config(const fs::path& folder, Task task) {
  const fs::path file = folder / "config.json";
  SEQCONV_CHECK(
      fs::is_regular_file(file),
      "'",
      folder.string(),
      "' is not a model folder: it has no config.json");
  Json config = parse_json(read_file(file), file.string());
  const auto wanted = [&](const char* key) -> const Json& {
    SEQCONV_CHECK(
        config.is_object() && config.contains(key),
        file.string(),
        ": the key '",
        key,
        "' is missing");
    return config[key];
  };
  SEQCONV_CHECK(
      wanted("format") == kFormat,
      file.string(),
      ": format must be \"",
      kFormat,
      "\", but got ",
      config["format"].dump());
  SEQCONV_CHECK(
      wanted("format_version") == kFormatVersion,
      file.string(),
      ": this program reads format version ",
      kFormatVersion,
      ", but got ",
      config["format_version"].dump());
  wanted("architecture");
  wanted("text");
  check_task(config, task, folder);
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
  fail(
      "'",
      file.string(),
      "' is not inside a model folder: no config.json beside or above it");
}

/// Where the parameters of a model lie, given its folder or their file.
struct ModelPaths {
  fs::path folder;
  fs::path parameters;
};

ModelPaths find_model(const fs::path& path) {
  SEQCONV_CHECK(
      fs::exists(path),
      "no model '",
      path.string(),
      "': there is no such file or folder");
  if (fs::is_directory(path))
    return {path, path / "model.safetensors"};
  return {folder_of_checkpoint(path), path};
}

Json begin_config(Task task) {
  Json config = Json::object();
  config["format"] = kFormat;
  config["format_version"] = kFormatVersion;
  config["task"] = std::string(enum_name(task));
  return config;
}

void write_config(const fs::path& folder, const Json& config) {
  write_file_atomically(folder / "config.json", config.dump(2) + "\n");
}

/// Reads and checks one part of config.json; errors name the file.
template <class Read>
void read_part(const fs::path& folder, const Read& read) {
  try {
    read();
  } catch (const UsageError& error) {
    fail((folder / "config.json").string(), ": ", error.what());
  }
}

}  // namespace

void write_model_config(const LoadedModel& model) {
  create_folder(model.folder);
  Json config = begin_config(Task::kTranslation);
  config["architecture"] = write_options(model.options);
  config["architecture"].erase("adaptive");
  config["text"] = model.text.save(model.folder);
  config["decoding"] = write_options(model.decoding);
  write_config(model.folder, config);
}

void write_model_config(const LoadedLanguageModel& model) {
  create_folder(model.folder);
  Json config = begin_config(Task::kLanguageModel);
  config["architecture"] = write_options(model.options);
  config["architecture"].erase("encoder");
  config["text"] = model.text.save(model.folder);
  config["stream"] = write_options(model.stream);
  write_config(model.folder, config);
}

LoadedModel load_model_config(const fs::path& folder, uint64_t seed) {
  const Json config = read_config(folder, Task::kTranslation);
  LoadedModel loaded;
  loaded.folder = folder;
  read_part(folder, [&] {
    read_options(config["architecture"], "architecture", loaded.options);
    loaded.options.validate("architecture");
    if (config.contains("decoding")) {
      read_options(config["decoding"], "decoding", loaded.decoding);
      loaded.decoding.validate("decoding");
    }
  });
  loaded.text = TranslationText::load(folder, config["text"]);
  loaded.model = TranslationModel(
      loaded.options,
      loaded.text.source->vocabulary().size(),
      loaded.text.target->vocabulary().size(),
      seed);
  return loaded;
}

LoadedLanguageModel load_language_model_config(
    const fs::path& folder,
    uint64_t seed) {
  const Json config = read_config(folder, Task::kLanguageModel);
  LoadedLanguageModel loaded;
  loaded.folder = folder;
  loaded.options = ModelOptions::defaults(Task::kLanguageModel);
  read_part(folder, [&] {
    read_options(config["architecture"], "architecture", loaded.options);
    loaded.options.validate("architecture", Task::kLanguageModel);
    if (config.contains("stream")) {
      read_options(config["stream"], "stream", loaded.stream);
      loaded.stream.validate("stream");
    }
  });
  loaded.text = LanguageText::load(folder, config["text"]);
  read_part(folder, [&] {
    loaded.model = LanguageModel(
        loaded.options,
        loaded.text.text->vocabulary().size(),
        seed);
  });
  return loaded;
}

LoadedModel load_model(const fs::path& path) {
  const ModelPaths paths = find_model(path);
  LoadedModel loaded = load_model_config(paths.folder);
  load_parameters(paths.parameters, *loaded.model);
  loaded.model->eval();
  return loaded;
}

LoadedLanguageModel load_language_model(const fs::path& path) {
  const ModelPaths paths = find_model(path);
  LoadedLanguageModel loaded = load_language_model_config(paths.folder);
  load_parameters(paths.parameters, *loaded.model);
  loaded.model->eval();
  return loaded;
}

}  // namespace seqconv
