#pragma once

#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "model/model_description.h"
#include "search/backend.h"

/// Models that work on raw text: what their folder says of text and options,
/// and a backend that runs them. Copies share the backend.
namespace seqconv::internal {

class Shortlist;
class Terminology;
class TermWords;

/// Holds what a backend must know of a model to run it.
struct ModelToRun {
  ModelOptions options;
  VocabularySizes vocabulary;
  RootedPath parameters;         ///< a .safetensors file
  AlignmentOptions alignment{};  ///< of a translation model
};

/// The files of a model, or the sums of several.
struct ModelSize {
  int64_t models = 0;
  int64_t parameters = 0;  ///< numbers
  int64_t file_bytes = 0;

  /// Adds a model that was opened.
  void add(const ModelToRun& model, Task task);
};

/// A model that translates, or several that vote.
struct TranslationSystem : TranslationDescription {  // of the first
  std::shared_ptr<const TranslationBackend> backend;
  /// A translation holds only words that it lists, where it is given.
  std::shared_ptr<const Shortlist> shortlist{};
  /// Translations hold the terms of their texts, where it is given.
  std::shared_ptr<const Terminology> terminology{};
  std::shared_ptr<const TermWords> term_words{};  ///< of its target, for terms
  ModelSize size{};
};

/// Files for a model beside its own; "": none.
struct FilesBeside {
  std::filesystem::path shortlist{};    ///< of Shortlist
  std::filesystem::path terminology{};  ///< of Terminology
};

/// A model that goes on with a text.
struct LanguageSystem : LanguageDescription {
  std::shared_ptr<const LanguageBackend> backend;
  ModelSize size{};
};

/// Opens what can run models. Errors of both functions: a parameter missing,
/// left over, of another shape or not finite; models that cannot vote.
class BackendOpener {
 public:
  virtual ~BackendOpener() = default;
  /// The name that `--backend` and messages give it.
  virtual std::string_view name() const = 0;
  virtual std::shared_ptr<const TranslationBackend> translation(
      const std::vector<ModelToRun>& models) const = 0;
  virtual std::shared_ptr<const LanguageBackend> language(const ModelToRun& model) const = 0;
};

/// Opens a model, or several for an ensemble. A path is a model folder (then
/// model.safetensors, the best checkpoint, is read) or a .safetensors file of
/// parameters somewhere below one. Errors: no config.json, unknown format
/// version, a model of another task, a vocabulary that does not fit, models
/// whose texts turn lines into other ids, and those of the opener; of the files beside as of
/// Shortlist::load and Terminology::load, before a model's parameters are read.
TranslationSystem open_translation(
    const std::vector<RootedPath>& paths,
    const BackendOpener& opener,
    const FilesBeside& beside = {});
LanguageSystem open_language_model(const RootedPath& path, const BackendOpener& opener);

}  // namespace seqconv::internal
