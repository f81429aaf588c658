#include "train/records.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <numbers>

#include "base/options.h"
#include "train/run_plan.h"

namespace seqconv::internal {
namespace {

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

/// A record begins with what it is and where the run stands.
Json begin_record(const char* kind, const Position& position) {
  return {{"kind", kind}, {"epoch", position.epoch}, {"update", position.update}};
}

void add_loss(const CorpusLoss& loss, Json& record) {
  record["loss_base2"] = loss.loss_base2;
  record["nll_base2"] = loss.nll_base2;
  record["perplexity"] = loss.perplexity;
}

void add_number(
    const Json& record, const std::string& key, const char* pattern, std::string& line) {
  if (!record.contains(key) || !record[key].is_number())
    return;
  char text[64];
  std::snprintf(text, sizeof text, pattern, record[key].get<double>());
  line += text;
}

}  // namespace

Json start_record(const RunSetup& setup, int64_t batches) {
  Json record = begin_record("start", setup.resumed.value_or(Position{}));
  record["resumed"] = setup.resumed.has_value();
  record["time"] = utc_now();
  record["parameters"] = setup.task->model()->parameter_count();
  record.update(setup.task->describe());
  record["train_samples"] = setup.data.train.samples->size();
  record["valid_samples"] = setup.data.valid ? setup.data.valid->samples->size() : 0;
  record["batches_per_epoch"] = batches;
  record["processes"] = setup.communicator->size();
  record["threads"] = at::get_num_threads();
  record["config"] = write_options(setup.config);
  return record;
}

Json train_record(const Position& position) {
  const UpdateSums& sums = position.logged;
  Json record = begin_record("train", position);
  if (sums.target_tokens > 0)
    add_loss(corpus_loss(sums.loss, sums.nll, sums.target_tokens), record);
  if (sums.aligned_tokens > 0)
    record["alignment_base2"] =
        sums.alignment / std::numbers::ln2 / static_cast<double>(sums.aligned_tokens);
  record["learning_rate"] = position.learning_rate;
  record["gradient_norm"] = position.gradient_norm;
  record["target_tokens"] = sums.target_tokens;
  record["source_tokens"] = sums.source_tokens;
  record["sentences"] = sums.sentences;
  record["skipped_updates"] = position.logged_skips;
  if (position.loss_scale > 0)
    record["loss_scale"] = position.loss_scale;
  record["target_tokens_per_second"] =
      static_cast<double>(sums.target_tokens) / std::max(position.logged_seconds, 1e-9);
  record["elapsed_seconds"] = position.seconds;
  return record;
}

Json validation_record(const Position& position, const ValidationResult& result) {
  Json record = begin_record("validation", position);
  add_loss(result.loss, record);
  record["target_tokens"] = result.loss.target_tokens;
  // Before the scores: who looks for the last "bleu" of a file finds a number.
  for (const TextScore& score : result.scores)
    record["signatures"][std::string(enum_name(score.metric))] = score.signature;
  for (const TextScore& score : result.scores)
    record[std::string(enum_name(score.metric))] = score.score;
  record["best"] = result.best;
  record["elapsed_seconds"] = position.seconds;
  return record;
}

Json end_record(const Position& position, const std::string& reason) {
  Json record = begin_record("end", position);
  record["reason"] = reason;
  record["elapsed_seconds"] = position.seconds;
  return record;
}

ProgressStatus progress_status(
    const Position& position, const TrainingOptions& training, int64_t batches) {
  const int64_t total = counted_end(training, batches);
  const UpdateSums& sums = position.logged;
  ProgressStatus status;
  status.epoch = position.epoch;
  status.max_epochs = training.max_epochs;
  status.batch = position.batch;
  status.batches = batches;
  status.updates_left = total > 0 ? std::max<int64_t>(total - position.update, 0) : -1;
  if (position.update > 0)
    status.seconds_per_update = position.seconds / static_cast<double>(position.update);
  if (sums.target_tokens > 0) {
    status.loss_base2 = corpus_loss(sums.loss, sums.nll, sums.target_tokens).loss_base2;
    status.tokens_per_second =
        static_cast<double>(sums.target_tokens) / std::max(position.logged_seconds, 1e-9);
  }
  return status;
}

std::string record_line(const Json& record, const MetricOptions& metrics) {
  std::string line = concat(
      record.value("kind", ""),
      "  epoch ",
      record.value("epoch", int64_t{0}),
      "  update ",
      record.value("update", int64_t{0}));
  add_number(record, "loss_base2", "  loss %.3f", line);
  add_number(record, "nll_base2", "  nll %.3f", line);
  add_number(record, "perplexity", "  perplexity %.2f", line);
  add_number(record, "alignment_base2", "  alignment %.3f", line);
  for (const auto& [name, kind] : EnumNames<MetricKind>::kNames) {
    if (!record.contains(name))
      continue;
    const std::string pattern = concat("  ", make_metric(kind, false, metrics)->name(), " %.2f");
    add_number(record, std::string(name), pattern.c_str(), line);
  }
  add_number(record, "learning_rate", "  rate %.3g", line);
  add_number(record, "gradient_norm", "  norm %.3f", line);
  add_number(record, "target_tokens_per_second", "  %.0f tokens/s", line);
  if (record.value("best", false))
    line += "  (best)";
  return line;
}

}  // namespace seqconv::internal
