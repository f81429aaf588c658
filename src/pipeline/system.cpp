#include "pipeline/system.h"

#include <algorithm>
#include <system_error>

#include "model/descriptions_in_use.h"
#include "pipeline/shortlist.h"
#include "text/terminology.h"

namespace seqconv::internal {
namespace fs = std::filesystem;

void ModelSize::add(const ModelToRun& model, Task task) {
  std::error_code gone;  // since it was opened
  const auto bytes = static_cast<int64_t>(fs::file_size(model.parameters.path(), gone));
  ++models;
  parameters += parameter_count(list_parameters(model.options, task, model.vocabulary));
  file_bytes += std::max<int64_t>(bytes, 0);
}

TranslationSystem open_translation(
    const std::vector<RootedPath>& paths, const BackendOpener& opener, const FilesBeside& beside) {
  SEQCONV_CHECK(!paths.empty(), "translating needs at least one model");
  TranslationSystem system;
  std::vector<ModelToRun> models;
  DescriptionsInUse descriptions;
  for (const RootedPath& path : paths) {
    const ModelFiles files = find_model(path);
    descriptions.add(files);
    TranslationDescription model = read_translation_description(files.folder);
    models.push_back({model.options, model.vocabulary(), files.parameters, model.alignment});
    if (models.size() == 1) {
      static_cast<TranslationDescription&>(system) = std::move(model);
      continue;
    }
    if (const std::string found = difference(system.text, model.text); !found.empty())
      fail_other_text(system.folder, model.folder, "models of an ensemble", found);
  }
  if (!beside.shortlist.empty())
    system.shortlist =
        std::make_shared<const Shortlist>(Shortlist::load(beside.shortlist, system.text));
  if (!beside.terminology.empty())
    system.terminology = std::make_shared<const Terminology>(Terminology::load(beside.terminology));
  system.backend = opener.translation(models);
  for (const ModelToRun& model : models)
    system.size.add(model, Task::kTranslation);
  descriptions.check();
  return system;
}

LanguageSystem open_language_model(const RootedPath& path, const BackendOpener& opener) {
  const ModelFiles files = find_model(path);
  DescriptionsInUse descriptions;
  descriptions.add(files);
  LanguageSystem system{read_language_description(files.folder)};
  const ModelToRun model{system.options, system.vocabulary(), files.parameters};
  system.backend = opener.language(model);
  system.size.add(model, Task::kLanguageModel);
  descriptions.check();
  return system;
}

}  // namespace seqconv::internal
