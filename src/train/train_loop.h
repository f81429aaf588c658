#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "text/corpus/batcher.h"
#include "train/parameter_average.h"
#include "train/position.h"
#include "train/processes/batch_share.h"
#include "train/processes/gradient_sum.h"
#include "train/progress.h"
#include "train/records.h"
#include "train/run_plan.h"
#include "train/run_setup.h"
#include "train/run_writer.h"
#include "train/updates.h"

namespace seqconv::internal {

/// The updates of a run, one after the other, with all that happens between
/// them. What must survive an interruption is in position_ and in the flat
/// buffers; everything else follows from the setup. All processes of a run go
/// through the same updates, and the first one writes.
class TrainLoop {
 public:
  explicit TrainLoop(RunSetup setup);

  /// Trains until a limit is reached. Interrupted when a signal came (the state
  /// is saved first); Error when training diverges or a file cannot be written.
  void run();

 private:
  void begin_update();
  void take_batch();
  void end_update();
  /// Notes what the update that has just ended calls for.
  void note_dues();
  /// Does what is due.
  void settle();
  void log_training();
  void validate();
  /// Validates the parameters as they are now.
  ValidationResult measure_parameters(const ValidationStop& stop);
  double measure(const ValidationResult& result) const;
  bool is_gain(const ValidationResult& result) const;
  void keep_best(const ValidationResult& result);
  bool can_be_saved();
  void save_checkpoint();
  /// Writes the model that the folder is opened with.
  void write_model();
  void save_state_file();
  void stop_if_asked();
  /// That any process was sent; 0 if none was.
  int any_signal();
  /// Tells which parameters the model has.
  std::string model_text() const;
  /// Writes the parameters of the last update where model.safetensors has others: beside it, or
  /// in its place while no validation has chosen one.
  void keep_last();
  /// Tells whether a validation of the last update is wanted, and short enough.
  bool validates_at_a_stop();
  /// Tells whether one takes longer than who asks a run to stop waits for.
  bool is_validation_long();
  /// Validates the last update once the state is saved: its parameters become the model if they
  /// are the best. A run that goes on does not know of it (RunWriter::leave_stop).
  void validate_last();
  /// Saves the state and the last parameters, validates these where that is short, and throws
  /// Interrupted, in all processes.
  [[noreturn]] void stop_for(int signal);
  /// Completes the model that the folder has, if any: with a warning where that fails, as
  /// the run itself is over. All processes call it.
  void complete_model();
  void finish(const std::string& reason);

  RunTensors tensors() { return {parameters_, optimizer_, average_.values(), shares_}; }
  /// Says so where the time of the run is nearly over before its first update.
  void warn_of_preparation() const;
  ProgressStatus status() const;
  const TrainingOptions& training() const { return setup_.config.training; }
  Communicator& processes() const { return *setup_.communicator; }
  bool is_alone() const { return processes().size() == 1; }

  RunSetup setup_;
  FlatParameters parameters_;
  FlatShares shares_;  // of the processes in optimizer_ and average_
  Optimizer optimizer_;
  ParameterAverage average_;
  GradientSum gradients_;
  Batcher batches_;
  std::optional<Batcher> valid_batches_;
  std::vector<uint32_t> order_;   // of the epoch under way
  std::vector<UpdateBatch> own_;  // of the update, still to be taken
  Position position_;
  RunPlan plan_;
  std::unique_ptr<Updates> updates_;
  bool has_state_;              // whether the folder holds one of this run
  int64_t saved_plan_ = -1;     // position_.planned_updates in it
  bool state_is_last_ = false;  // whether it is of this very place
  bool last_is_kept_ = false;   // whether its parameters lie beside the model
  RunWriter writer_;
  Progress progress_;
};

}  // namespace seqconv::internal
