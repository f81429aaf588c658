#pragma once

#include <filesystem>
#include <string>

#include "seqconv/base/options.h"
#include "seqconv/data/stream_corpus.h"
#include "seqconv/decode/search.h"
#include "seqconv/models/language_model.h"
#include "seqconv/models/options.h"
#include "seqconv/models/translation_model.h"
#include "seqconv/text/language_text.h"
#include "seqconv/text/text_pipeline.h"

/// Model folders: docs/model_folder.md.
namespace seqconv {

/// A model that translates raw text.
struct LoadedModel {
  std::filesystem::path folder;
  ModelOptions options;
  TranslationText text;
  SearchOptions decoding;  ///< defaults for translation
  TranslationModel model{nullptr};
};

/// A model that goes on with raw text.
struct LoadedLanguageModel {
  std::filesystem::path folder;
  ModelOptions options;
  LanguageText text;
  StreamOptions stream;  ///< how its text was cut into samples
  LanguageModel model{nullptr};
};

/// Creates the model's folder and writes the vocabulary and subword files and
/// config.json (format version, task, architecture, text, and the defaults for
/// decoding or the cut of the text).
void write_model_config(const LoadedModel& model);
void write_model_config(const LoadedLanguageModel& model);

/// Opens a model. `path` is a model folder (then model.safetensors, the best
/// checkpoint, is read) or a .safetensors file of parameters somewhere below
/// one. Errors: no config.json, unknown format version, a model of another
/// task, a parameter missing, left over or of another shape, vocabulary that
/// does not fit.
LoadedModel load_model(const std::filesystem::path& path);
LoadedLanguageModel load_language_model(const std::filesystem::path& path);

/// The same with freshly drawn parameters: for resuming and fine-tuning.
LoadedModel load_model_config(
    const std::filesystem::path& folder,
    uint64_t seed = 1);
LoadedLanguageModel load_language_model_config(
    const std::filesystem::path& folder,
    uint64_t seed = 1);

}  // namespace seqconv
