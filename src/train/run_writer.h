#pragma once

#include <filesystem>
#include <optional>

#include "train/event_file.h"
#include "train/metrics_log.h"
#include "train/parameter_average.h"
#include "train/run_setup.h"

namespace seqconv::internal {

/// What a run writes into its folder while it trains: records, checkpoints, its
/// state. The first process does it; the others give it what they keep their
/// share of, and wait until a file is whole: one that went on could fail or
/// leave, and who has started it would end the first in the middle.
class RunWriter {
 public:
  /// `setup` must outlive the writer.
  explicit RunWriter(const RunSetup& setup);

  /// Opens the files of the records, which go on where the run stands.
  void open_records(const Position& position);
  void write_record(const Json& record);
  /// Writes a record that a run which goes on takes back: the curves are without it.
  void write_passing_record(const Json& record);
  /// The model's parameters, their average where one is kept.
  void write_parameters(
      const std::filesystem::path& file, const Position& position, ParameterAverage& average);
  /// Makes the parameters of model.last.safetensors the model; the best that the state knows is
  /// kept for a run that goes on. All processes call it.
  void promote_last();
  /// Gives the folder what an uninterrupted run would have: the best that the state knows is the
  /// model again, and the last parameters of the stop go. `position` is that of the state, or a
  /// later one with the same best. All processes call it, as often as they like.
  void leave_stop(const Position& position);
  /// A checkpoint of the present update, which `position` notes. One that
  /// another run has left under this name is set aside.
  void write_checkpoint(Position& position, ParameterAverage& average);
  /// The state of the run; notes in `position` how many records belong to it.
  void write_state(Position& position, const RunTensors& tensors);
  /// Deletes the run's old checkpoints and what other processes left
  /// unfinished.
  void clean_up(Position& position);

 private:
  /// A checkpoint that is written, and what was there before under its name.
  static void settle_other(const std::filesystem::path& file, const std::filesystem::path& other);
  /// The parameters, for which their average stands if one is kept.
  void save_averaged(
      const std::filesystem::path& file,
      const Position& position,
      const ParameterAverage& average) const;
  void wait_for_the_first() const;
  void open_events(const Position& position);

  const RunSetup& setup_;
  bool writes_;
  std::optional<MetricsLog> metrics_;  // while running
  std::optional<EventFile> events_;    // where wanted
};

}  // namespace seqconv::internal
