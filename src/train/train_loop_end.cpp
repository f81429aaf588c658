#include <cmath>

#include "base/log.h"
#include "base/signals.h"
#include "libtorch/backend/libtorch_errors.h"
#include "train/train_loop.h"

/// The end of a run, by a limit or a signal.
namespace seqconv::internal {
namespace {

/// Who asks a run to stop waits so long for a validation, at most.
constexpr double kMostSecondsAtAStop = 60;

}  // namespace

void TrainLoop::keep_last() {
  if (position_.model_update == position_.update)
    return;
  // A run that has no best model yet leaves what it has learned.
  if (!position_.has_best)
    return write_model();
  writer_.write_parameters(setup_.folder.last(), position_, average_);
  last_is_kept_ = true;
}

bool TrainLoop::validates_at_a_stop() {
  // One that the signal has cut short is not begun again: the run owes it.
  const bool is_cut_short = position_.validation_due;
  if (!valid_batches_ || is_cut_short || position_.validated_update == position_.update)
    return false;
  return !is_validation_long();
}

bool TrainLoop::is_validation_long() {
  const bool is_long = plan_.validation_seconds() > kMostSecondsAtAStop;
  return processes().any(is_long);  // each has its own clock
}

void TrainLoop::validate_last() {
  ParameterAverage::InUse averaged(average_);
  ValidationResult result = measure_parameters({});
  averaged.end();
  result.best = is_gain(result);
  // Neither the state nor the run that goes on from it knows of this validation.
  if (result.best && last_is_kept_) {
    writer_.promote_last();
    last_is_kept_ = false;
    position_.model_update = position_.update;
  }
  Json record = validation_record(position_, result);
  record["at_stop"] = true;
  writer_.write_passing_record(record);
  progress_.line(record_line(record, setup_.config.metrics));
}

void TrainLoop::complete_model() {
  try {
    if (processes().is_first() && position_.model_update > 0)
      guarded([&] { setup_.task->complete(setup_.folder.root, setup_.data); });
  } catch (const std::exception& error) {
    progress_.clear();
    log_warning(
        "the model is written, but which of its heads make alignments could not be chosen: ",
        error.what());
  }
  processes().barrier();
}

void TrainLoop::stop_for(int signal) {
  progress_.clear();
  bool saved = state_is_last_;
  {
    const Saving saving;
    saved = saved || can_be_saved();
    if (saved && !state_is_last_)
      save_state_file();
    if (saved && position_.update > 0)
      keep_last();
  }
  // The starter of several processes may send those that are left another signal.
  std::optional<Saving> together;
  if (!is_alone())
    together.emplace();
  if (saved && position_.update > 0 && validates_at_a_stop())
    validate_last();
  {
    const Saving saving;
    writer_.write_record(end_record(position_, "interrupted"));
  }
  if (saved && !is_validation_long())
    complete_model();
  static const Saving leaving;  // to the end of the program
  processes().barrier();        // with the first, which alone writes
  throw Interrupted(
      signal,
      concat(
          "interrupted in epoch ",
          position_.epoch,
          " after update ",
          position_.update,
          saved ? "; the state is saved, go on with the same command and --resume"
                : "; its parameters or the optimizer's are not finite, an earlier state stays",
          "; ",
          model_text()));
}

std::string TrainLoop::model_text() const {
  if (position_.model_update < 0)
    return "no model is written yet";
  if (position_.model_update == position_.update)
    return "model.safetensors has the parameters of this update";
  return concat(
      "best model: update ",
      position_.model_update,
      ", model.safetensors",
      last_is_kept_ ? concat("; last: update ", position_.update, ", ", kLastParameters) : "");
}

void TrainLoop::finish(const std::string& reason) {
  position_.validation_due = valid_batches_ && position_.validated_update != position_.update;
  position_.checkpoint_due = position_.validation_due || position_.saved_update != position_.update;
  settle();
  SEQCONV_CHECK(
      position_.saved_update == position_.update,
      "training has diverged: after its last update, ",
      position_.update,
      ", parameters or the optimizer's state are NaN or infinite. Lower schedule.learning_rate (",
      setup_.config.schedule.learning_rate,
      "). The last saved checkpoint is untouched");
  // An epoch's end may have been saved before the clock made it the run's.
  if (saved_plan_ != position_.planned_updates)
    save_state_file();
  keep_last();
  writer_.write_record(end_record(position_, reason));
  complete_model();
  progress_.line(concat(
      "training ends at training.",
      reason,
      ": ",
      position_.update,
      " updates in ",
      duration_text(position_.seconds)));
  if (last_is_kept_)
    progress_.line(model_text());
}

}  // namespace seqconv::internal
