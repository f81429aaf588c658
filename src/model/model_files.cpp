#include <unistd.h>

#include <algorithm>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/files.h"
#include "base/made_once.h"
#include "base/safetensors.h"
#include "model/model_checkpoints.h"
#include "model/model_description.h"

/// Checks of the files of models against each other and their descriptions.
namespace seqconv::internal {
namespace fs = std::filesystem;
namespace {

constexpr const char* kTraining = "training";

/// Whether config.json says so; it may be one that this program cannot read.
bool is_model_folder(const fs::path& folder) {
  std::error_code none;
  const RootedPath file = RootedPath(folder, Links::kAnywhere) / "config.json";
  return fs::is_regular_file(file, none) &&
      read_file(file).find("\"seqconv-model\"") != std::string::npos;
}

/// Training makes the lock first; older programs made none.
bool holds_run(const fs::path& folder) {
  std::error_code none;
  const fs::path training = folder / kTraining;
  return fs::exists(training / "lock", none) || fs::exists(training / "state.safetensors", none) ||
      (fs::is_directory(training, none) && is_model_folder(folder));
}

/// Whether a model folder may have a file of this name.
bool is_model_file_name(const std::string& name) {
  return name == "config.json" || name.ends_with(".safetensors") || name.ends_with(".codes") ||
      name.ends_with(".model") ||
      (name.find("dict") != std::string::npos && name.ends_with(".txt"));
}

}  // namespace

std::vector<ParameterShape> parameters_of_model(const RootedPath& folder) {
  const auto list = [](Task task, const auto& model) {
    return list_parameters(model.options, task, model.vocabulary());
  };
  const Task task = task_of_model(folder);
  switch (task) {
    case Task::kTranslation:
      return list(task, read_translation_description(folder));
    case Task::kLanguageModel:
      return list(task, read_language_description(folder));
  }
  fail("unknown task ", static_cast<int>(task));
}

void check_same_text(const ModelFiles& first, const ModelFiles& other, const std::string& what) {
  if (first.folder == other.folder)
    return;
  const Task task = task_of_model(first.folder);
  std::string found = "task";
  if (task_of_model(other.folder) == task)
    found = task == Task::kTranslation ? difference(
                                             read_translation_description(first.folder).text,
                                             read_translation_description(other.folder).text)
                                       : difference(
                                             read_language_description(first.folder).text,
                                             read_language_description(other.folder).text);
  if (!found.empty())
    fail_other_text(first.folder, other.folder, what, found);
}

void fail_other_text(
    const fs::path& first,
    const fs::path& other,
    const std::string& what,
    const std::string& difference) {
  fail(
      what,
      " must share 'text' of config.json, but ",
      first.string(),
      " and ",
      other.string(),
      " differ in: ",
      difference);
}

fs::path enclosing_run(const fs::path& path) {
  for (fs::path folder = resolve_path(path);; folder = folder.parent_path()) {
    if (holds_run(folder))
      return folder;
    if (folder == folder.parent_path())
      return {};
  }
}

bool is_inside_training(const fs::path& path) {
  // Whatever runs were begun in between.
  for (fs::path folder = resolve_path(path); folder != folder.parent_path();
       folder = folder.parent_path())
    if (folder.filename() == kTraining && holds_run(folder.parent_path()))
      return true;
  return false;
}

void check_output_folder(const fs::path& output) {
  std::error_code none;
  SEQCONV_CHECK(
      !fs::exists(resolve_path(output) / kTraining, none),
      "--output must not be the folder of a trained model, but '",
      output.string(),
      "' holds its training");
  const fs::path run = enclosing_run(output);
  SEQCONV_CHECK(
      run.empty(),
      "--output must not lie in the folder of a trained model, but '",
      output.string(),
      "' lies in '",
      run.string(),
      "', which holds its training");
}

const std::vector<std::string>& model_file_names() {
  static MadeOnce<std::vector<std::string>> names;
  return names.get([] {
    std::vector<std::string> all = {"config.json", "model.safetensors", kLastParameters};
    for (const std::string side : {"", "source.", "target."})
      for (const char* text : {"dict.txt", "bpe.codes", "sentencepiece.model"})
        all.push_back(side + text);
    return all;
  });
}

void check_own_folder(const fs::path& folder) {
  check_written_files({folder, Links::kAnywhere});
  std::error_code none;
  const fs::path config = folder / "config.json";
  SEQCONV_CHECK(
      !fs::is_regular_file(config, none) || is_model_folder(folder),
      "'",
      config.string(),
      "' is of another program and would be lost: choose another --output");
  if (fs::is_regular_file(config, none) || holds_run(folder))
    return;
  for (const std::string& name : model_file_names())
    SEQCONV_CHECK(
        !fs::exists(fs::symlink_status(folder / name, none)),
        "'",
        (folder / name).string(),
        "' would be lost, as the folder is no model's that this program has written (",
        config.string(),
        " would say so): move the file away, or choose another --output");
}

void check_written_files(const RootedPath& folder) {
  const auto check = [&](const fs::path& name) {
    std::error_code none;
    const RootedPath file = folder / name;
    if (folder.links() == Links::kInside && fs::is_symlink(fs::symlink_status(file, none)))
      ::close(file.open());  // an error of what may not be read
    const fs::file_status found = fs::status(file, none);
    SEQCONV_CHECK(
        !fs::exists(found) || fs::is_regular_file(found) || fs::is_directory(found),
        "cannot write '",
        file.string(),
        "': an ordinary file was wanted, but it is a pipe, a socket or a device");
  };
  for (const std::string& name : model_file_names())
    check(name);
  const fs::path training = kTraining;
  for (const fs::path& place : {training, training / "data", training / "checkpoints"}) {
    std::error_code error;
    for (fs::directory_iterator at(folder.path() / place, error), end; !error && at != end;
         at.increment(error))
      if (!fs::is_directory(at->path(), error))
        check(place / at->path().filename());
  }
}

void check_other_folder(const fs::path& output, const ModelFiles& model) {
  std::error_code none;
  const fs::path folder = resolve_path(output);
  SEQCONV_CHECK(
      !fs::equivalent(folder, model.folder, none) &&
          !fs::equivalent(folder / "model.safetensors", model.parameters, none),
      "--output must be another folder than the model's own, but got ",
      output.string(),
      ": its best checkpoint would be lost");
}

void copy_text_files(const RootedPath& from, const fs::path& to) {
  const auto& own = model_file_names();
  for (const auto& entry : fs::directory_iterator(from.path())) {
    const fs::path name = entry.path().filename();
    if (entry.is_regular_file() && name.extension() != ".safetensors" && name != "config.json" &&
        !unfinished_file(name) &&
        (std::ranges::find(own, name.string()) != own.end() || !fs::exists(to / name)))
      write_file_atomically(to / name, read_file(from / name));
  }
}

void check_output_file(const fs::path& output, const ModelFiles& model) {
  std::error_code none;
  SEQCONV_CHECK(
      !fs::equivalent(output, model.parameters, none),
      "the output '",
      output.string(),
      "' is the model's own file of parameters, which would be lost: choose another name");
  const fs::path file = resolve_path(output);
  const fs::path folder = file.parent_path();
  const bool in_model = is_model_folder(folder) || holds_run(folder);
  SEQCONV_CHECK(
      !in_model || !fs::exists(file, none),
      "the output '",
      output.string(),
      "' would replace a file of the model folder '",
      folder.string(),
      "': choose another name");
  SEQCONV_CHECK(
      !in_model || !is_model_file_name(file.filename().string()),
      "the output '",
      output.string(),
      "' would have the name of a part of the model in '",
      folder.string(),
      "': choose another name");
  SEQCONV_CHECK(
      !is_inside_training(folder),
      "the output '",
      output.string(),
      "' lies among the files of a training: choose another folder");
}

}  // namespace seqconv::internal
