#pragma once

#include "libtorch/models/language_model.h"
#include "libtorch/models/translation_model.h"
#include "model/model_description.h"

/// Models of LibTorch with their folder: docs/model_folder.md. Code that does
/// not train needs none of this (pipeline/system.h).
namespace seqconv::internal {

/// A model that translates raw text.
struct LoadedModel : TranslationDescription {
  TranslationModel model{nullptr};
};

/// A model that goes on with raw text.
struct LoadedLanguageModel : LanguageDescription {
  LanguageModel model{nullptr};
};

/// Opens a model: the same paths and errors as pipeline/system.h. Its
/// parameters are born on `device`.
LoadedModel load_model(const RootedPath& path, at::Device device = at::kCPU);
LoadedLanguageModel load_language_model(const RootedPath& path, at::Device device = at::kCPU);

/// The same for a folder without its parameters, which stay unset until
/// somebody fills them: for resuming.
LoadedModel load_model_config(const RootedPath& folder, at::Device device = at::kCPU);
LoadedLanguageModel load_language_model_config(
    const RootedPath& folder, at::Device device = at::kCPU);

}  // namespace seqconv::internal
