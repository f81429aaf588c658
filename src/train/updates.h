#pragma once

#include <functional>
#include <memory>

#include "text/corpus/batch.h"
#include "train/options.h"
#include "train/parameter_average.h"
#include "train/position.h"
#include "train/processes/gradient_sum.h"
#include "train/update.h"

namespace seqconv::internal {

/// Makes the updates of a run out of batches, and keeps those numbers of its
/// position that losses and gradients decide. A device computes them long after
/// it was asked to, so that the position has them only after read().
class Updates {
 public:
  virtual ~Updates() = default;

  /// Forward and backward of one batch of the update under way.
  virtual void add_batch(const Batch& batch, const RandomKey& key) = 0;
  /// Ends the update: gradients summed over the processes, clipped, one step,
  /// or none where they cannot be used. Error when training has diverged.
  virtual void end(const StepOptions& options) = 0;
  /// Brings the position and the optimiser's scalars up to date. Error when
  /// training has diverged.
  virtual void read() = 0;
  /// What counts since the last record counts from now on.
  virtual void begin_record() = 0;
};

/// Scaling of the gradients of float16, most of which would be 0 otherwise. The
/// scale is halved where it made them too large for float16, whose update is
/// skipped, and doubled after many updates without that.
struct LossScaling {
  bool on = false;
  int64_t growth_interval = 2000;  ///< updates in a row
};

/// The loss is a sum over tokens, so that a scale need not be as large as for a
/// mean.
inline constexpr double kFirstLossScale = 0x1p7;
inline constexpr double kLeastLossScale = 0x1p-14;
inline constexpr double kMostLossScale = 0x1p24;

/// What both kinds work with; all of it outlives them.
struct UpdateParts {
  const TrainConfig& config;
  const SequenceModel& model;
  const FlatParameters& parameters;
  Optimizer& optimizer;
  ParameterAverage& average;
  GradientSum& gradients;
  Position& position;
  /// Called before a warning.
  std::function<void()> before_warning;
  LossScaling scaling = {};  ///< only make_device_updates has it
};

/// Chosen by where the parameters are.
std::unique_ptr<Updates> make_updates(const UpdateParts& parts);

/// The two kinds; make_updates chooses. The second works on the host as well,
/// but slower.
std::unique_ptr<Updates> make_host_updates(const UpdateParts& parts);
std::unique_ptr<Updates> make_device_updates(const UpdateParts& parts);

/// Updates in a row that may be skipped before training is given up; those that
/// a lower loss scale may mend are not counted.
inline constexpr int64_t kMostSkipsInARow = 10;

/// Error that says what to do about it.
[[noreturn]] void fail_diverged(const UpdateParts& parts);

/// What training minimises.
LossOptions loss_options(const TrainingOptions& training);

}  // namespace seqconv::internal
