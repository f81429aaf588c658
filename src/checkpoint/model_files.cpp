#include <algorithm>

#include "seqconv/base/error.h"
#include "seqconv/base/safetensors.h"
#include "seqconv/checkpoint/model_description.h"

/// Checks of the files of models against each other and their descriptions.
namespace seqconv {
namespace fs = std::filesystem;

std::vector<ParameterShape> parameters_of_model(const fs::path& folder) {
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

void check_same_text(
    const ModelFiles& first,
    const ModelFiles& other,
    const std::string& what) {
  if (first.folder == other.folder)
    return;
  const Task task = task_of_model(first.folder);
  std::string found = "task";
  if (task_of_model(other.folder) == task)
    found = task == Task::kTranslation
        ? difference(
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

void check_parameters(
    const SafetensorsReader& reader,
    const std::vector<ParameterShape>& wanted) {
  for (const ParameterShape& parameter : wanted) {
    const TensorView& found = reader.at(parameter.name);
    SEQCONV_CHECK(
        found.shape == parameter.shape,
        reader.path().string(),
        ": parameter '",
        parameter.name,
        "' must have shape ",
        shape_text(parameter.shape),
        " as config.json tells, but got ",
        shape_text(found.shape));
  }
  for (const auto& [name, view] : reader.tensors())
    SEQCONV_CHECK(
        std::any_of(
            wanted.begin(),
            wanted.end(),
            [&, &tensor = name](const auto& parameter) {
              return parameter.name == tensor;
            }),
        reader.path().string(),
        ": the model has no parameter '",
        name,
        "'");
}

void check_output_folder(const fs::path& output) {
  SEQCONV_CHECK(
      !fs::exists(output / "training"),
      "--output must not be the folder of a trained model, but '",
      output.string(),
      "' holds its training");
}

}  // namespace seqconv
