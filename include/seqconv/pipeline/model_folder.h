#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "seqconv/base/options.h"
#include "seqconv/decode/search.h"
#include "seqconv/models/options.h"
#include "seqconv/models/translation_model.h"
#include "seqconv/text/text_pipeline.h"

namespace seqconv {

/// A model that translates raw text: docs/model_folder.md.
struct LoadedModel {
  std::filesystem::path folder;
  ModelOptions options;
  TranslationText text;
  SearchOptions decoding;  ///< defaults for translation
  TranslationModel model{nullptr};
};

/// Creates `folder` and writes the vocabulary and subword files and
/// config.json (format version, architecture, text, decoding defaults).
void write_model_config(
    const std::filesystem::path& folder,
    const ModelOptions& options,
    const TranslationText& text,
    const SearchOptions& decoding);

/// Opens a model. `path` is a model folder (then model.safetensors, the best
/// checkpoint, is read) or a .safetensors file of parameters somewhere below
/// one. Errors: no config.json, unknown format version, a parameter missing,
/// left over or of another shape, vocabulary that does not fit.
LoadedModel load_model(const std::filesystem::path& path);

/// The same with freshly drawn parameters: for resuming and fine-tuning.
LoadedModel load_model_config(
    const std::filesystem::path& folder,
    uint64_t seed = 1);

/// Parameters by name, as safetensors (float32), written atomically.
void save_parameters(
    const std::filesystem::path& file,
    const TranslationModelImpl& model,
    const std::map<std::string, std::string>& metadata);

/// Fills `model` from a safetensors file; every name and shape must fit.
void load_parameters(
    const std::filesystem::path& file,
    TranslationModelImpl& model);

}  // namespace seqconv
