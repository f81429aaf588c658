#include "pipeline/system.h"

#include "model/descriptions_in_use.h"
#include "pipeline/shortlist.h"

namespace seqconv::internal {
namespace fs = std::filesystem;

void ModelSize::add(const ModelFiles& files, const std::vector<ParameterShape>& shapes) {
  ++models;
  parameters += parameter_count(shapes);
  file_bytes += static_cast<int64_t>(fs::file_size(files.parameters.path()));
}

TranslationSystem open_translation(
    const std::vector<RootedPath>& paths, const BackendOpener& opener, const fs::path& shortlist) {
  SEQCONV_CHECK(!paths.empty(), "translating needs at least one model");
  TranslationSystem system;
  std::vector<ModelToRun> models;
  ModelSize size;
  DescriptionsInUse descriptions;
  for (const RootedPath& path : paths) {
    const ModelFiles files = find_model(path);
    descriptions.add(files);
    TranslationDescription model = read_translation_description(files.folder);
    models.push_back({model.options, model.vocabulary(), files.parameters, model.alignment});
    size.add(files, list_parameters(model.options, Task::kTranslation, model.vocabulary()));
    if (models.size() == 1) {
      static_cast<TranslationDescription&>(system) = std::move(model);
      continue;
    }
    if (const std::string found = difference(system.text, model.text); !found.empty())
      fail_other_text(system.folder, model.folder, "models of an ensemble", found);
  }
  system.size = size;
  if (!shortlist.empty())
    system.shortlist = std::make_shared<const Shortlist>(Shortlist::load(shortlist, system.text));
  system.backend = opener.translation(models);
  descriptions.check();
  return system;
}

LanguageSystem open_language_model(const RootedPath& path, const BackendOpener& opener) {
  const ModelFiles files = find_model(path);
  DescriptionsInUse descriptions;
  descriptions.add(files);
  LanguageSystem system{read_language_description(files.folder)};
  system.size.add(
      files, list_parameters(system.options, Task::kLanguageModel, system.vocabulary()));
  system.backend = opener.language({system.options, system.vocabulary(), files.parameters});
  descriptions.check();
  return system;
}

}  // namespace seqconv::internal
