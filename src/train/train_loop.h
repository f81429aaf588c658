#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "event_file.h"
#include "metrics_log.h"
#include "parameter_average.h"
#include "position.h"
#include "progress.h"
#include "records.h"
#include "run_setup.h"
#include "seqconv/base/stopwatch.h"
#include "seqconv/data/batcher.h"
#include "seqconv/train/update.h"

namespace seqconv {

/// The updates of a run, one after the other, with all that happens between
/// them. What must survive an interruption is in position_ and in the flat
/// buffers; everything else follows from the setup.
class TrainLoop {
 public:
  explicit TrainLoop(RunSetup setup);

  /// Trains until a limit is reached. Interrupted when a signal came (the state
  /// is saved first); Error when training diverges or a file cannot be written.
  void run();

 private:
  /// Why the run is over: a limit's key; "" while it is not.
  std::string reason_to_stop() const;
  void take_batch();
  void end_update();
  void count_skip(double gradient_norm);
  /// Notes what the update that has just ended calls for.
  void note_dues();
  /// Does what is due.
  void settle();
  void write_record(const Json& record);
  void log_training();
  void validate();
  double measure(const ValidationResult& result) const;
  bool is_gain(const ValidationResult& result) const;
  void keep_best(const ValidationResult& result);
  bool can_be_saved();
  void save_checkpoint();
  void save_state_file();
  void write_parameters(const std::filesystem::path& file);
  void stop_if_asked();
  void finish(const std::string& reason);

  RunTensors tensors() { return {parameters_, optimizer_, average_.values()}; }
  ops::CrossEntropyOptions loss_options() const;
  ProgressStatus status() const {
    return progress_status(position_, training(), batches_.size());
  }
  const TrainingOptions& training() const { return setup_.config.training; }

  RunSetup setup_;
  FlatParameters parameters_;
  Optimizer optimizer_;
  ParameterAverage average_;
  SingleProcess communicator_;
  Batcher batches_;
  std::optional<Batcher> valid_batches_;
  std::vector<uint32_t> order_;  // of the epoch under way
  Position position_;
  bool has_state_;  // whether the folder holds one of this run
  std::optional<MetricsLog> metrics_;  // while running
  std::optional<EventFile> events_;    // where wanted
  Progress progress_;
  Stopwatch watch_;
};

}  // namespace seqconv
