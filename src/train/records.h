#pragma once

#include <string>
#include <utility>
#include <vector>

#include "metrics/corpus_metric.h"
#include "train/position.h"
#include "train/progress.h"
#include "train/run_setup.h"
#include "train/validate.h"

/// The records of training/metrics.jsonl (docs/metrics.md) and the lines that
/// say the same to a person.
namespace seqconv::internal {

/// What one validation found.
struct ValidationResult {
  CorpusLoss loss;
  std::vector<TextScore> scores;
  bool best = false;
};

Json start_record(const RunSetup& setup, int64_t batches);
Json train_record(const Position& position);
Json validation_record(const Position& position, const ValidationResult& result);
Json end_record(const Position& position, const std::string& reason);

/// Where a run stands whose epochs have `batches` batches.
ProgressStatus progress_status(
    const Position& position, const TrainingOptions& training, int64_t batches);

/// From a record of kind "train" or "validation" (which may be short of keys);
/// `metrics` says what scores are called.
std::string record_line(const Json& record, const MetricOptions& metrics = {});

}  // namespace seqconv::internal
