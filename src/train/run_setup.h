#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/folder_lock.h"
#include "train/checkpoint.h"
#include "train/processes/communicator.h"
#include "train/run_folder.h"
#include "train/task.h"

namespace seqconv::internal {

/// Everything that a training run works with, before its first batch.
struct RunSetup {
  TrainConfig config;
  std::shared_ptr<Communicator> communicator;
  RunFolder folder;
  /// Held as long as the run lives, by the first process.
  std::shared_ptr<const FolderLock> lock;
  std::shared_ptr<TrainingTask> task;  ///< text and the model that is trained
  PreparedData data;
  /// {"config", "text", "inputs"}: what a resumed run must share.
  Json settings;
  std::optional<Position> resumed;
  /// Seconds since the set-up began.
  std::function<double()> clock;
  /// Called after every batch, before signals are looked at; may be empty.
  std::function<void(const Position&)> after_batch;
};

/// Checks that the output folder fits the request: UsageError when it holds a
/// run or a model and --resume is missing, or when there is nothing to resume.
void check_output(const TrainRequest& request);

/// Takes the folder for the run, then prepares text, data and model, or opens
/// those of the run that is resumed. The first process does it; the others
/// open what it has made.
RunSetup set_up_run(
    const TrainRequest& request,
    std::shared_ptr<Communicator> communicator = std::make_shared<SingleProcess>());

}  // namespace seqconv::internal
