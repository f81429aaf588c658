#include "train/options.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "base/device_name.h"
#include "base/error.h"
#include "base/options.h"
#include "train/data_options.h"

namespace seqconv::internal {
namespace {

template <class T>
void check_at_least(const char* key, T value, T least) {
  if (value < least)
    fail_usage(key, " must be >= ", least, ", but got ", value);
}

/// A share in [0, 1).
void check_share(const char* key, double value) {
  if (value < 0 || value >= 1)
    fail_usage(key, " must be >= 0 and < 1, but got ", value);
}

void check_positive(const char* key, double value) {
  if (!(value > 0))
    fail_usage(key, " must be > 0, but got ", value);
}

void check_language_model_data(const TrainConfig& config) {
  const DataOptions& data = config.data;
  if (data.documents().format != TextFormat::kText || !data.target_key.empty())
    fail_usage("data.source_key, data.target_key and data.stories are for translation, but the "
               "task is language_model");
  if (data.max_source_tokens != 0 || data.max_target_tokens != 0)
    fail_usage(
        "data.max_",
        data.max_source_tokens != 0 ? "source" : "target",
        "_tokens is for translation, but the task is language_model; it has data.block_tokens");
  if (!data.train_source.empty() || !data.train_target.empty() || !data.valid_source.empty() ||
      !data.valid_target.empty())
    fail_usage(
        "a language model has one text, data.train and data.valid, but got data.",
        data.train_source.empty() && data.train_target.empty() ? "valid" : "train",
        "_source or _target");
  if (data.train.empty())
    fail_usage("data.train must name at least one file");
  data.stream.validate("data");
  const ModelOptions& model = config.model;
  const int64_t learned = model.learned_positions(model.decoder);
  if (data.stream.samples != SampleKind::kLines && learned > 0 &&
      data.stream.block_tokens > learned)
    fail_usage(
        "data.block_tokens must be <= model.",
        model.decoder.max_positions > 0 ? "decoder." : "",
        "max_positions = ",
        learned,
        " with learned positions, but got ",
        data.stream.block_tokens);
}

/// The key that asks for a translation of the validation text; "" if none does.
std::string translating_key(const TrainingOptions& training) {
  if (training.validate_bleu)
    return "training.validate_bleu";
  if (!training.validate_metrics.empty())
    return "training.validate_metrics";
  if (training.best_metric())
    return concat("training.best_by = \"", training.best_by, "\"");
  return "";
}

/// Keys of translation that a language model would ignore.
void check_language_model_training(const TrainConfig& config) {
  const TrainingOptions& training = config.training;
  if (const std::string key = translating_key(training); !key.empty())
    fail_usage(key, " is for translation, but the task is language_model");
  if (training.guided_alignment != 0)
    fail_usage("training.guided_alignment is for translation, but the task is language_model");
  if (write_options(config.decoding) != write_options(DecodingOptions{}))
    fail_usage("[decoding] is for translation, but the task is language_model; `seqconv generate` "
               "has flags of its own");
  if (write_options(config.metrics) != write_options(MetricOptions{}))
    fail_usage("[metrics] is for translation, but the task is language_model");
}

void check_smoothing(const TrainConfig& config) {
  if (config.training.label_smoothing > 0 && !config.model.adaptive.softmax_cutoffs.empty())
    fail_usage(
        "training.label_smoothing must be 0 with an adaptive softmax "
        "(model.adaptive.softmax_cutoffs), but got ",
        config.training.label_smoothing);
}

void check_text(const TextOptions& text) {
  check_at_least<int64_t>("text.subword_size", text.subword_size, 1);
  check_at_least<int64_t>("text.min_count", text.min_count, 1);
  check_at_least<int64_t>("text.max_vocabulary", text.max_vocabulary, 0);
  check_positive("text.character_coverage", text.character_coverage);
  if (text.character_coverage > 1)
    fail_usage("text.character_coverage must be <= 1, but got ", text.character_coverage);
}

void check_tying(const TextOptions& text, const ModelOptions& model) {
  if (model.tie == Tying::kAll && !text.joined)
    fail_usage(
        "model.tie = \"all\" shares one matrix between both sides and needs text.joined = true, "
        "but got false; set model.tie = \"decoder\" or \"none\" for separate vocabularies");
}

void check_batching(const BatchingOptions& batching) {
  check_at_least<int64_t>("batching.max_tokens", batching.max_tokens, 1);
  check_at_least<int64_t>("batching.max_sentences", batching.max_sentences, 0);
  check_at_least<int64_t>("batching.multiple", batching.multiple, 1);
}

void check_training(const TrainingOptions& training, const char* missing) {
  check_at_least<int64_t>("training.seed", training.seed, 0);
  check_at_least<int64_t>("training.max_epochs", training.max_epochs, 0);
  check_at_least<int64_t>("training.max_updates", training.max_updates, 0);
  check_at_least<int64_t>("training.accumulate", training.accumulate, 1);
  parse_device_name("training.device", training.device);
  check_share("training.label_smoothing", training.label_smoothing);
  if (!(training.guided_alignment >= 0 && std::isfinite(training.guided_alignment)))
    fail_usage(
        "training.guided_alignment must be a number >= 0, but got ", training.guided_alignment);
  check_at_least<int64_t>("training.validate_every", training.validate_every, 0);
  check_at_least<int64_t>("training.save_every", training.save_every, 0);
  check_at_least<int64_t>("training.keep_last", training.keep_last, 0);
  check_share("training.ema_decay", training.ema_decay);
  check_share("training.ema_share", training.ema_share);
  if (training.ema_decay > 0 && training.ema_share > 0)
    fail_usage(
        "training.ema_decay and training.ema_share exclude each other, but both are given: ",
        training.ema_decay,
        " and ",
        training.ema_share);
  check_at_least<int64_t>("training.patience", training.patience, 0);
  check_at_least<int64_t>("training.log_every", training.log_every, 1);
  training.best_metric();
  check_at_least<int64_t>("training.threads", training.threads, 0);
  if (training.threads > 1024)
    fail_usage("training.threads must be <= 1024, but got ", training.threads);
  check_at_least("training.max_minutes", training.max_minutes, 0.0);
  if (training.max_epochs == 0 && training.max_updates == 0 && training.max_minutes == 0 &&
      training.patience == 0)
    fail_usage("training would never end: set training.max_epochs, training.max_updates, "
               "training.max_minutes or training.patience");
  if (missing == nullptr)
    return;
  const auto needs_validation = [missing](const char* what) {
    fail_usage(what, " needs validation text: set ", missing);
  };
  if (training.patience > 0)
    needs_validation("training.patience");
  if (training.validate_every > 0)
    needs_validation("training.validate_every");
  if (const std::string key = translating_key(training); !key.empty())
    needs_validation(key.c_str());
}

void check_optimizer(const OptimizerOptions& optimizer) {
  check_share("optimizer.beta1", optimizer.beta1);
  check_share("optimizer.beta2", optimizer.beta2);
  check_positive("optimizer.epsilon", optimizer.epsilon);
  check_share("optimizer.momentum", optimizer.momentum);
  check_at_least("optimizer.weight_decay", optimizer.weight_decay, 0.0);
  check_at_least("optimizer.clip_norm", optimizer.clip_norm, 0.0);
}

void check_schedule(const ScheduleOptions& schedule, const TrainingOptions& training) {
  check_positive("schedule.learning_rate", schedule.learning_rate);
  check_at_least<int64_t>("schedule.warmup_updates", schedule.warmup_updates, 0);
  check_at_least("schedule.warmup_start", schedule.warmup_start, 0.0);
  check_at_least("schedule.min_learning_rate", schedule.min_learning_rate, 0.0);
  check_at_least<int64_t>("schedule.period", schedule.period, 0);
  check_share("schedule.warmup_share", schedule.warmup_share);
  check_share("schedule.cooldown_share", schedule.cooldown_share);
  if (schedule.warmup_share + schedule.cooldown_share > 1)
    fail_usage(
        "schedule.warmup_share and schedule.cooldown_share must be <= 1 together, but got ",
        schedule.warmup_share,
        " and ",
        schedule.cooldown_share);
  check_at_least("schedule.period_multiplier", schedule.period_multiplier, 1.0);
  check_positive("schedule.period_shrink", schedule.period_shrink);
  if (schedule.kind == ScheduleKind::kInverseSqrt && schedule.warmup_updates == 0 &&
      schedule.warmup_share == 0)
    fail_usage(
        "schedule.warmup_updates must be > 0 with schedule.kind = \"inverse_sqrt\", but got 0");
  if (schedule.kind != ScheduleKind::kInverseSqrt &&
      schedule.min_learning_rate > schedule.learning_rate)
    fail_usage(
        "schedule.min_learning_rate must be <= schedule.learning_rate = ",
        schedule.learning_rate,
        ", but got ",
        schedule.min_learning_rate);
  if (schedule.needs_end() && training.max_epochs == 0 && training.max_updates == 0 &&
      training.max_minutes == 0)
    fail_usage(
        "[schedule] falls to the run's end (kind = \"",
        enum_name(schedule.kind),
        "\", warmup_share = ",
        schedule.warmup_share,
        ", cooldown_share = ",
        schedule.cooldown_share,
        "), which needs training.max_minutes, training.max_updates or training.max_epochs");
}

}  // namespace

std::optional<MetricKind> TrainingOptions::best_metric() const {
  if (best_by == "loss")
    return std::nullopt;
  for (const auto& [name, kind] : EnumNames<MetricKind>::kNames)
    if (name == best_by)
      return kind;
  fail_usage(
      "training.best_by must be 'loss' or a metric, ",
      enum_list<MetricKind>(),
      ", but got '",
      best_by,
      "'");
}

std::vector<MetricKind> TrainingOptions::metrics() const {
  std::vector<MetricKind> all;
  const auto add = [&](MetricKind metric) {
    if (std::ranges::find(all, metric) == all.end())
      all.push_back(metric);
  };
  if (validate_bleu)
    add(MetricKind::kBleu);
  std::ranges::for_each(validate_metrics, add);
  if (const auto best = best_metric())
    add(*best);
  return all;
}

TrainConfig TrainConfig::defaults(Task task) {
  TrainConfig config;
  config.task = task;
  config.model = ModelOptions::defaults(task);
  if (task == Task::kLanguageModel)
    config.training.label_smoothing = 0;
  return config;
}

void TrainConfig::validate() const {
  const char* missing = nullptr;  // keys of validation text that is not given
  switch (task) {
    case Task::kTranslation:
      check_pair_data(data);
      check_tying(text, model);
      check_cuts(data, model);
      if (data.validation_pairs().source.empty() && data.hold_out == 0)
        missing = "data.valid_source and data.valid_target, or data.hold_out";
      break;
    case Task::kLanguageModel:
      check_language_model_data(*this);
      check_language_model_training(*this);
      if (data.valid.empty() && data.hold_out == 0)
        missing = "data.valid or data.hold_out";
      break;
  }
  check_at_least<int64_t>("data.hold_out", data.hold_out, 0);
  check_smoothing(*this);
  model.validate("model", task);
  check_text(text);
  check_batching(batching);
  check_training(training, missing);
  check_optimizer(optimizer);
  check_schedule(schedule, training);
  decoding.validate("decoding");
  metrics.validate("metrics");
}

TrainConfig read_train_config(const Json& table) {
  Task task = Task::kTranslation;
  if (table.is_object() && table.contains("task")) {
    std::string name;
    detail::read_value(table["task"], "task", name);
    task = parse_enum<Task>(name, "task");
  }
  TrainConfig config = TrainConfig::defaults(task);
  read_options(table, "", config);
  config.validate();
  return config;
}

}  // namespace seqconv::internal
