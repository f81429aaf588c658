#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/option_names.h"
#include "libtorch/ops/linear_cross_entropy.h"
#include "metrics/corpus_metric.h"
#include "model/options.h"
#include "search/search.h"
#include "text/corpus/batcher.h"
#include "text/corpus/stream_corpus.h"
#include "text/text_pipeline.h"
#include "text/text_source.h"
#include "train/parameter_average.h"

/// The configuration of a training run: what `seqconv train` reads.
namespace seqconv::internal {

/// The files of both sides of samples, the i-th of one beside that of the
/// other.
struct PairSources {
  std::vector<TextSource> source;
  std::vector<TextSource> target;
};

/// Samples of the training text that are held out of it for validation (train/held_out.h).
struct HeldOut {
  /// The numbers of their lines, for each file of data.train_source or data.train.
  std::vector<std::shared_ptr<const std::vector<int64_t>>> lines;
  std::string folder;  ///< of the files with them

  /// The names of their files: the sides of pairs, or lines of one file.
  static constexpr const char* kSource = "validation.source";
  static constexpr const char* kTarget = "validation.target";
  static constexpr const char* kLines = "validation.lines";
  std::string file(const char* name) const { return folder + "/" + name; }
};

/// [data]. Translation reads the keys of two sides, and files that hold both;
/// language models read train and valid. Files of lines are text or, by their
/// names (.bin, .idx), fairseq's binarised data.
struct DataOptions {
  std::vector<std::string> train_source;
  std::vector<std::string> train_target;
  std::vector<std::string> valid_source;
  std::vector<std::string> valid_target;
  std::vector<std::string> train;
  std::vector<std::string> valid;
  std::string source_key;
  std::string target_key;
  std::vector<std::string> stories;
  Links links = Links::kInside;  ///< of the folders of stories; no key
  int64_t max_source_tokens = 0;
  int64_t max_target_tokens = 0;
  int64_t hold_out = 0;
  HeldOut held_out;  ///< no key: of the run
  StreamOptions stream;

  /// Says what the files of `train` and `valid` are.
  DocumentOptions documents() const;
  /// One of them; `side` matters where it holds both.
  TextSource source_of(const std::string& file, PairSide side) const;
  /// Lists what a translation model is trained on, and what judges it: the samples that are
  /// held out (held_out) where nothing else is given.
  PairSources training_pairs() const;
  PairSources validation_pairs() const;
  /// Lists the files of a language model, likewise.
  std::vector<TextSource> training_text() const;
  std::vector<TextSource> validation_text() const;

  template <class Visitor>
  void visit(Visitor& v) {
    v("train_source",
      train_source,
      R"(Translation: files of training text, one sentence a line, or binarised data (.bin))",
      KeyUse::kMayChange);
    v("train_target",
      train_target,
      "Its translation, as many files, line by line",
      KeyUse::kMayChange);
    v("valid_source",
      valid_source,
      "Validation text; without it there is no best checkpoint",
      KeyUse::kMayChange);
    v("valid_target", valid_target, "Its translation", KeyUse::kMayChange);
    v("train",
      train,
      R"(Language model: files of training text, or binarised data (.bin). Translation: files that hold both sides, JSON lines (source_key, target_key) or lists of story files (stories))",
      KeyUse::kMayChange);
    v("valid", valid, "Its validation text", KeyUse::kMayChange);
    v("source_key", source_key, "JSON lines: the key of the source, nested by dots: article.body");
    v("target_key", target_key, "JSON lines: the key of the target");
    v("stories",
      stories,
      R"(Story files of CNN-DailyMail: the folders of the files that train and valid list, a name a line)",
      KeyUse::kMayChange);
    v("max_source_tokens",
      max_source_tokens,
      R"(Translation: a longer source is cut to so many tokens, </s> counted, by the model too: at least 2, or 0 = pairs beyond model.max_positions are left out)");
    v("max_target_tokens",
      max_target_tokens,
      "The same for targets, in training and validation alone");
    v("hold_out",
      hold_out,
      R"(Without validation text: about so many samples of the training text are held out for it, a tenth at most; pairs by a hash of the source, of a language model the last lines; 0 = none)");
    stream.visit(v);
  }
};

enum class OptimizerKind { kAdam, kNag };
template <>
struct EnumNames<OptimizerKind> {
  static constexpr auto kNames = std::to_array<std::pair<std::string_view, OptimizerKind>>(
      {{"adam", OptimizerKind::kAdam}, {"nag", OptimizerKind::kNag}});
};

/// [optimizer] (semantics.md 3.1).
struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::kAdam;
  double beta1 = 0.9;
  double beta2 = 0.98;
  double epsilon = 1e-8;
  double momentum = 0.99;
  double weight_decay = 0;
  double clip_norm = 0;

  template <class Visitor>
  void visit(Visitor& v) {
    v("kind", kind, "adam or nag");
    v("beta1", beta1, "adam: decay of the first moment, in [0, 1)");
    v("beta2", beta2, "adam: decay of the second moment, in [0, 1)");
    v("epsilon", epsilon, "adam: added to the root of the second moment, above 0");
    v("momentum", momentum, "nag: momentum, in [0, 1)");
    v("weight_decay", weight_decay, "Decoupled weight decay, times the learning rate; at least 0");
    v("clip_norm", clip_norm, "Largest norm of the gradient, at least 0; 0 = off");
  }
};

enum class ScheduleKind { kInverseSqrt, kCosine, kLinear };
template <>
struct EnumNames<ScheduleKind> {
  static constexpr auto kNames = std::to_array<std::pair<std::string_view, ScheduleKind>>(
      {{"inverse_sqrt", ScheduleKind::kInverseSqrt},
       {"cosine", ScheduleKind::kCosine},
       {"linear", ScheduleKind::kLinear}});
};

/// [schedule] (semantics.md 3.1, 8.11).
struct ScheduleOptions {
  ScheduleKind kind = ScheduleKind::kInverseSqrt;
  double learning_rate = 5e-4;
  int64_t warmup_updates = 4000;
  double warmup_share = 0;
  double warmup_start = 1e-7;
  double cooldown_share = 0;
  double min_learning_rate = 0;
  int64_t period = 20000;
  double period_multiplier = 1;
  double period_shrink = 1;

  /// Tells whether a rate depends on how many updates the run has.
  bool needs_end() const;

  template <class Visitor>
  void visit(Visitor& v) {
    v("kind", kind, "After the warm-up: inverse_sqrt, cosine or linear (to the run's end)");
    v("learning_rate", learning_rate, "The highest learning rate, above 0");
    v("warmup_updates", warmup_updates, "Updates of linear warm-up (inverse_sqrt: at least 1)");
    v("warmup_share",
      warmup_share,
      "Share of the run's updates that warm-up takes, in [0, 1), in place of warmup_updates; 0 = "
      "off");
    v("warmup_start", warmup_start, "Learning rate at update 0, at least 0");
    v("cooldown_share",
      cooldown_share,
      R"(Share of the run's updates, in [0, 1), by whose end the rate has fallen to 0 in a straight line, whatever the kind; 0 = off)");
    v("min_learning_rate",
      min_learning_rate,
      "cosine and linear: the lowest rate, 0 to learning_rate");
    v("period", period, "cosine: updates of the first cycle; 0 = half a wave to the run's end");
    v("period_multiplier", period_multiplier, "cosine: each cycle is longer by this, at least 1");
    v("period_shrink", period_shrink, "cosine: factor on the rates from cycle to cycle, above 0");
  }
};

/// The type of activations and their products; parameters, gradients, sums and
/// the optimiser's state are float32.
enum class Precision { kFloat32, kBFloat16, kFloat16 };
template <>
struct EnumNames<Precision> {
  static constexpr auto kNames = std::to_array<std::pair<std::string_view, Precision>>(
      {{"float32", Precision::kFloat32},
       {"bfloat16", Precision::kBFloat16},
       {"float16", Precision::kFloat16}});
};

/// [training].
struct TrainingOptions {
  int64_t seed = 1;
  int64_t max_epochs = 0;
  int64_t max_updates = 0;
  double max_minutes = 0;
  int64_t accumulate = 1;
  double label_smoothing = 0.1;
  ops::SmoothingForm smoothing_form = ops::SmoothingForm::kAll;
  double guided_alignment = 0;
  int64_t validate_every = 0;
  int64_t save_every = 0;
  int64_t keep_last = 5;
  double ema_decay = 0;
  double ema_share = 0;
  int64_t patience = 0;
  /// "loss", or the name of a metric: what the best checkpoint is chosen by,
  /// and early stopping looks at.
  std::string best_by = "loss";
  std::vector<MetricKind> validate_metrics;
  bool validate_bleu = false;  ///< as "bleu" among validate_metrics
  int64_t log_every = 50;
  bool tensorboard = false;
  int64_t threads = 0;
  std::string device = "auto";
  bool shard_optimizer = false;
  Precision precision = Precision::kFloat32;

  /// The metric of best_by; nothing where it is the loss. UsageError for a name
  /// that neither has.
  std::optional<MetricKind> best_metric() const;
  AverageOptions average() const { return {.decay = ema_decay, .share = ema_share}; }
  /// All that the validation text is to be translated for, each once.
  std::vector<MetricKind> metrics() const;

  template <class Visitor>
  void visit(Visitor& v) {
    v("seed", seed, "Seed of initial weights, order of batches and dropout; at least 0");
    v("max_epochs", max_epochs, "Stop after this many epochs, 0 = no limit", KeyUse::kMayChange);
    v("max_updates", max_updates, "Stop after this many updates, 0 = no limit", KeyUse::kMayChange);
    v("max_minutes",
      max_minutes,
      R"(End within so many minutes, preparation, validation and earlier parts of the run counted; 0 = no limit. Schedules that fall to the run's end are planned by it)",
      KeyUse::kMayChange);
    v("accumulate",
      accumulate,
      R"(Batches summed to one update, those of all processes together; at least 1, and one a process)");
    v("label_smoothing",
      label_smoothing,
      R"(Probability taken off the right word, in [0, 1) (0 by default in language models))");
    v("smoothing_form",
      smoothing_form,
      "Where it goes: all words (the paper) or the others (fairseq)");
    v("guided_alignment",
      guided_alignment,
      R"(Translation: weight of the loss by which a head of the decoder learns the alignment of the training text's words; at least 0, 0 = off)");
    v("validate_every",
      validate_every,
      "Updates between validations, 0 = at each epoch's end",
      KeyUse::kMayChange);
    v("save_every",
      save_every,
      "Updates between checkpoints, 0 = with each validation",
      KeyUse::kMayChange);
    v("keep_last", keep_last, "Checkpoints kept besides the best one", KeyUse::kMayChange);
    v("ema_decay",
      ema_decay,
      R"(Decay of an exponential moving average of the parameters, which is validated and stored in their place; in [0, 1), 0 = off)");
    v("ema_share",
      ema_share,
      R"(The same over a share of the updates so far, the last ones, in [0, 1): a run of any length has an average of its end; 0 = off)");
    v("patience",
      patience,
      "Validations without gain before stopping, 0 = off",
      KeyUse::kMayChange);
    v("best_by",
      best_by,
      R"(What the best checkpoint is chosen by: loss, or a metric of the validation text's translation (bleu, chrf, ter, rouge1, rouge2, rougeL, exact))");
    v("validate_metrics",
      validate_metrics,
      "Metrics to report of the validation text's translation",
      KeyUse::kMayChange);
    v("validate_bleu",
      validate_bleu,
      "The same as \"bleu\" in validate_metrics",
      KeyUse::kMayChange);
    v("log_every",
      log_every,
      "Updates between two records of metrics, at least 1",
      KeyUse::kMayChange);
    v("tensorboard",
      tensorboard,
      R"(Write the records' numbers for TensorBoard too, into training/tensorboard)",
      KeyUse::kMayChange);
    v("threads",
      threads,
      R"(Threads of the tensor library, 0 to 1,024; 0 = all cores, of which processes on one machine have equal shares)",
      KeyUse::kMayChange);
    v("device",
      device,
      R"(Where the model is trained: cpu, cuda, cuda:N, or auto, a CUDA device where there is one)",
      KeyUse::kMayChange);
    v("shard_optimizer",
      shard_optimizer,
      R"(Each process keeps its share of the optimiser's state and of the moving average, not all of it; the numbers stay the same)",
      KeyUse::kMayChange);
    v("precision",
      precision,
      R"(Type of activations and products: float32, bfloat16, or float16 (not on the CPU), whose loss is scaled; parameters stay float32)");
  }
};

/// Says who chooses sizes, rates and lengths that the file leaves out.
enum class Sizes {
  kDefault,  ///< nobody: they have their defaults
  kAuto,     ///< the program, for the data and the time (train/auto_settings.h)
};
template <>
struct EnumNames<Sizes> {
  static constexpr auto kNames = std::to_array<std::pair<std::string_view, Sizes>>(
      {{"default", Sizes::kDefault}, {"auto", Sizes::kAuto}});
};

/// The whole file.
struct TrainConfig {
  Task task = Task::kTranslation;
  Sizes sizes = Sizes::kDefault;
  DataOptions data;
  TextOptions text;
  ModelOptions model;
  BatchingOptions batching;
  TrainingOptions training;
  OptimizerOptions optimizer;
  ScheduleOptions schedule;
  DecodingOptions decoding;
  MetricOptions metrics;

  template <class Visitor>
  void visit(Visitor& v) {
    v("task", task, "translation or language_model");
    v("sizes",
      sizes,
      R"(What keys are that are left out: their defaults, or auto, chosen for the data and the time; auto where [model], [batching], [schedule], [optimizer] and text.subword_size are all left out)",
      KeyUse::kMayChange);
    v("data", data, "Text files, or fairseq's binarised data");
    v("text", text, "From raw text to ids");
    v("model", model, "Architecture");
    v("batching", batching, "Size of batches");
    v("training", training, "Length of the run, loss, validation");
    v("optimizer", optimizer, "Optimiser");
    v("schedule", schedule, "Learning rate");
    v("decoding", decoding, "Search, for validation and as model's default");
    v("metrics", metrics, "How validation computes metrics, as the flags of `seqconv evaluate`");
  }

  /// The defaults for a task: a language model is pre-norm and learned without
  /// label smoothing.
  static TrainConfig defaults(Task task);

  /// UsageError naming the key (or both keys) when values make no sense or
  /// contradict each other.
  void validate() const;
};

/// Reads and validates a configuration file's table; keys that it leaves out
/// have the defaults of its task.
TrainConfig read_train_config(const Json& table);

}  // namespace seqconv::internal
