#pragma once

#include <filesystem>

#include "seqconv/checkpoint/model_description.h"
#include "seqconv/models/language_model.h"
#include "seqconv/models/translation_model.h"

/// Models with their parameters: docs/model_folder.md. A loaded model is not
/// changed by what translates, scores or generates with it, so that several
/// threads may do so at a time; copies share the parameters.
namespace seqconv {

/// A model that translates raw text.
struct LoadedModel : TranslationDescription {
  TranslationModel model{nullptr};
};

/// A model that goes on with raw text.
struct LoadedLanguageModel : LanguageDescription {
  LanguageModel model{nullptr};
};

/// Opens a model. `path` is a model folder (then model.safetensors, the best
/// checkpoint, is read) or a .safetensors file of parameters somewhere below
/// one. Errors: no config.json, unknown format version, a model of another
/// task, a parameter missing, left over, of another shape or not finite,
/// vocabulary that does not fit.
LoadedModel load_model(const std::filesystem::path& path);
LoadedLanguageModel load_language_model(const std::filesystem::path& path);

/// The same for a folder without its parameters, which stay unset until
/// somebody fills them: for resuming.
LoadedModel load_model_config(const std::filesystem::path& folder);
LoadedLanguageModel load_language_model_config(
    const std::filesystem::path& folder);

}  // namespace seqconv
