#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/optimizer_scalars.h"
#include "train/processes/update_sums.h"

namespace seqconv::internal {

/// Everything about a run that is no tensor and no file: a checkpoint stores
/// it, and going on from it gives the numbers of an uninterrupted run.
struct Position {
  int64_t epoch = 1;
  int64_t batch = 0;        ///< batches of the epoch already used
  int64_t update = 0;       ///< updates ended, skipped ones too
  int64_t micro_batch = 0;  ///< batches in the update under way
  UpdateSums current;       ///< of the update under way

  UpdateSums logged;  ///< since the last "train" record, skipped ones not
  int64_t logged_skips = 0;
  double logged_seconds = 0;  ///< of training since that record
  double learning_rate = 0;   ///< of the last update
  double gradient_norm = 0;   ///< of the last update

  int64_t skips_in_a_row = 0;
  double loss_scale = 0;              ///< of float16; 0: not begun, or another
  int64_t updates_at_loss_scale = 0;  ///< in a row, none of them skipped
  int64_t validated_update = -1;      ///< of the last validation
  int64_t saved_update = -1;          ///< of the last checkpoint
  bool validation_due = false;        ///< owed by an interrupted run
  bool checkpoint_due = false;        ///< likewise
  bool has_best = false;
  double best = 0;            ///< loss in base 2, or a score
  int64_t model_update = -1;  ///< of the parameters in model.safetensors
  int64_t validations_without_gain = 0;

  double seconds = 0;                ///< of training, without validation
  double elapsed = 0;                ///< seconds of the run, with all that it did
  int64_t planned_updates = 0;       ///< of the whole run; 0: no plan
  std::string planned_for;           ///< the limits that it was made for
  int64_t metrics_records = 0;       ///< lines of metrics.jsonl that belong to it
  std::vector<int64_t> checkpoints;  ///< the updates of those that it keeps
  OptimizerScalars optimizer;

  template <class Visitor>
  void visit(Visitor& v) {
    v("epoch", epoch, "");
    v("batch", batch, "");
    v("update", update, "");
    v("micro_batch", micro_batch, "");
    v("current", current, "");
    v("logged", logged, "");
    v("logged_skips", logged_skips, "");
    v("logged_seconds", logged_seconds, "");
    v("learning_rate", learning_rate, "");
    v("gradient_norm", gradient_norm, "");
    v("skips_in_a_row", skips_in_a_row, "");
    v("loss_scale", loss_scale, "");
    v("updates_at_loss_scale", updates_at_loss_scale, "");
    v("validated_update", validated_update, "");
    v("saved_update", saved_update, "");
    v("validation_due", validation_due, "");
    v("checkpoint_due", checkpoint_due, "");
    v("has_best", has_best, "");
    v("best", best, "");
    v("model_update", model_update, "");
    v("validations_without_gain", validations_without_gain, "");
    v("seconds", seconds, "");
    v("elapsed", elapsed, "");
    v("planned_updates", planned_updates, "");
    v("planned_for", planned_for, "");
    v("metrics_records", metrics_records, "");
    v("checkpoints", checkpoints, "");
    v("optimizer", optimizer, "");
  }
};

}  // namespace seqconv::internal
