#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/options.h"
#include "base/rooted_path.h"
#include "base/safetensors.h"
#include "model/options.h"
#include "model/parameters.h"
#include "search/alignment_options.h"
#include "search/search.h"
#include "text/corpus/stream_corpus.h"
#include "text/language_text.h"
#include "text/text_pipeline.h"

/// Model folders but for their parameters: docs/model_folder.md.
namespace seqconv::internal {

/// The newest `format_version` of config.json. Whoever changes what a folder's
/// ids, parameters or options mean raises it and leaves a folder of the version
/// before in tests/model/folders: docs/model_folder.md has the rule.
inline constexpr int64_t kModelFormatVersion = 6;

/// Holds what config.json and the text files of a translation model say.
struct TranslationDescription {
  std::filesystem::path folder;
  ModelOptions options;
  TranslationText text;
  DecodingOptions decoding;    ///< defaults for translation
  DocumentOptions documents;   ///< what held its samples, for summarising
  AlignmentOptions alignment;  ///< of its looks at the source

  VocabularySizes vocabulary() const;
};

/// Holds what config.json and the text files of a language model say.
struct LanguageDescription {
  std::filesystem::path folder;
  ModelOptions options = ModelOptions::defaults(Task::kLanguageModel);
  LanguageText text;
  StreamOptions stream;  ///< how its text was cut into samples

  VocabularySizes vocabulary() const;
};

/// Creates the model's folder and writes the vocabulary and subword files and
/// config.json (format version, task, architecture, text, and the defaults for
/// decoding or the cut of the text).
void write_description(const TranslationDescription& model);
void write_description(const LanguageDescription& model);

/// Writes which looks make alignments into the config.json of a translation model.
void write_alignment(const std::filesystem::path& folder, const AlignmentOptions& alignment);

/// Reads what write_description wrote. Errors name the file: no config.json,
/// unknown format version, a model of another task, wrong options, vocabulary
/// that does not fit.
TranslationDescription read_translation_description(const RootedPath& folder);
LanguageDescription read_language_description(const RootedPath& folder);

/// The task of a model folder; the same errors.
Task task_of_model(const RootedPath& folder);

/// A model folder as files.
struct ModelFiles {
  RootedPath folder;      ///< holds config.json
  RootedPath parameters;  ///< a .safetensors file
  Json config;            ///< config.json, an object
};

/// `path` is a model folder (then its model.safetensors, the best checkpoint,
/// is meant) or a .safetensors file of parameters somewhere below one. Error
/// when it is neither, or config.json is not of a version that is read. The
/// folder's files may be links as those of `path` may.
ModelFiles find_model(const RootedPath& path);

/// Error, beginning with `what` ("checkpoints to average"), unless two models
/// are of one task and turn lines into the same ids: see difference().
void check_same_text(const ModelFiles& first, const ModelFiles& other, const std::string& what);

/// The same Error for a difference that was found.
[[noreturn]] void fail_other_text(
    const std::filesystem::path& first,
    const std::filesystem::path& other,
    const std::string& what,
    const std::string& difference);

/// The parameters that a folder's config.json tells. It reads the whole
/// description.
std::vector<ParameterShape> parameters_of_model(const RootedPath& folder);

/// The nearest folder at or above `path` that holds a training run, "" for
/// none. `path` need not be there; it may lead through links and "..".
std::filesystem::path enclosing_run(const std::filesystem::path& path);

/// Tells whether `path` is the folder `training` of a run, or lies in one.
bool is_inside_training(const std::filesystem::path& path);

/// Error when `output`, where a model is to be written, is or lies in the
/// folder of a training run: its files belong together, and it may be under
/// way.
void check_output_folder(const std::filesystem::path& output);

/// The names of the files that every model folder may have.
const std::vector<std::string>& model_file_names();

/// Error when a folder, where a model is to be written, has files of these
/// names that no program of ours has made: neither config.json nor a training
/// says so. They would be lost.
void check_own_folder(const std::filesystem::path& folder);

/// Error when something else than a file or a folder is among these names, or
/// in the training, of a folder that will be written to: who opens a pipe waits
/// for another. A link is one that a reader would follow, as a writer does.
void check_written_files(const RootedPath& folder);

/// config.json while a model is being written beside it.
std::string unfinished_config();

/// Error when a model is to be written into the folder, or over the file, that
/// it is read from; also where a link leads there.
void check_other_folder(const std::filesystem::path& output, const ModelFiles& model);

/// Copies a model folder's vocabularies, codes and what else it has beside
/// parameters and config.json, which comes last: until then there is no model.
/// Files that models need not have stay where they are there.
void copy_text_files(const RootedPath& from, const std::filesystem::path& to);

/// Error when the file `output`, to be written from a model, is its file of
/// parameters, would replace a file of any model folder or could be taken for
/// one, or lies among the files of a training.
void check_output_file(const std::filesystem::path& output, const ModelFiles& model);

}  // namespace seqconv::internal
