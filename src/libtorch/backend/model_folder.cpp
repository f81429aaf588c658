#include "libtorch/backend/model_folder.h"

#include "libtorch/backend/parameters.h"
#include "model/descriptions_in_use.h"

namespace seqconv::internal {

LoadedModel load_model_config(const RootedPath& folder, at::Device device) {
  LoadedModel loaded{read_translation_description(folder)};
  const VocabularySizes vocabulary = loaded.vocabulary();
  loaded.model =
      TranslationModel(loaded.options, vocabulary.source, vocabulary.target, std::nullopt, device);
  return loaded;
}

LoadedLanguageModel load_language_model_config(const RootedPath& folder, at::Device device) {
  LoadedLanguageModel loaded{read_language_description(folder)};
  loaded.model = LanguageModel(loaded.options, loaded.vocabulary().target, std::nullopt, device);
  return loaded;
}

LoadedModel load_model(const RootedPath& path, at::Device device) {
  const ModelFiles files = find_model(path);
  DescriptionsInUse descriptions;
  descriptions.add(files);
  LoadedModel loaded = load_model_config(files.folder, device);
  load_parameters(files.parameters, *loaded.model);
  descriptions.check();
  loaded.model->eval();
  return loaded;
}

LoadedLanguageModel load_language_model(const RootedPath& path, at::Device device) {
  const ModelFiles files = find_model(path);
  DescriptionsInUse descriptions;
  descriptions.add(files);
  LoadedLanguageModel loaded = load_language_model_config(files.folder, device);
  load_parameters(files.parameters, *loaded.model);
  descriptions.check();
  loaded.model->eval();
  return loaded;
}

}  // namespace seqconv::internal
