#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "libtorch/models/sequence_model.h"
#include "metrics/corpus_metric.h"
#include "train/prepared_data.h"
#include "train/trainer.h"
#include "train/validate.h"

namespace seqconv::internal {

/// What differs between tasks in a training run: its text, data and model. The
/// loop itself knows none of them.
class TrainingTask {
 public:
  virtual ~TrainingTask() = default;

  /// A new model: text learned from the training files and initial weights from
  /// the seed, or both from --init-from. Nothing is written.
  virtual void create(const TrainRequest& request) = 0;
  /// Text and (freshly drawn) model of a run that has begun in `folder`.
  virtual void open(const RootedPath& folder) = 0;
  /// Writes config.json and the text's files into `folder`.
  virtual void write_config(const std::filesystem::path& folder) = 0;

  /// The recipes that make ids of training and validation text.
  virtual CorpusRecipes recipes() const = 0;

  virtual std::shared_ptr<SequenceModel> model() const = 0;
  /// The options of the text as they came out of create() or open().
  virtual const TextOptions& text_options() const = 0;
  /// Vocabulary sizes and the like: fields of the "start" record.
  virtual Json describe() const = 0;
  /// Returns how translations are searched for, with limits that fit the training samples where
  /// `fits` asks for them; nothing for a language model.
  virtual std::optional<DecodingOptions> decoding_for(const SampleSource& training, bool fits) = 0;
  /// Symbols that the model predicts.
  virtual int64_t target_vocabulary() const = 0;

  /// Gives training samples what the loss wants of them besides their ids.
  virtual std::shared_ptr<const SampleSource> for_training(
      std::shared_ptr<const SampleSource> samples) const {
    return samples;
  }
  /// Completes the model that lies in `folder`: one process does it, whenever a run leaves a
  /// model. Error where it cannot be.
  virtual void complete(const RootedPath& folder, const PreparedData& data) {
    static_cast<void>(folder);
    static_cast<void>(data);
  }
  /// Tells whether the folder's model has all that complete() gives it.
  virtual bool is_complete() const { return true; }

  /// Scores of the validation text's translation, one a metric; the processes
  /// share the translating.
  virtual std::vector<TextScore> validation_scores(
      const std::vector<MetricKind>& metrics,
      Communicator& processes,
      const ValidationStop& stop) = 0;
};

/// Its model is born on `device`.
std::shared_ptr<TrainingTask> make_task(const TrainConfig& config, at::Device device = at::kCPU);

/// The two tasks; make_task chooses.
std::shared_ptr<TrainingTask> make_translation_task(const TrainConfig& config, at::Device device);
std::shared_ptr<TrainingTask> make_language_model_task(
    const TrainConfig& config, at::Device device);

/// "vocabulary 6000 symbols", from describe().
std::string vocabulary_text(const TrainingTask& task);

/// Gives `fresh` the values of `given`, a model of the same architecture.
void copy_parameters(const SequenceModel& given, SequenceModel& fresh);

}  // namespace seqconv::internal
