#pragma once

#include <c10/core/Device.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "train/options.h"
#include "train/processes/communicator.h"

namespace seqconv::internal {

/// Says how a run starts and where its results go.
struct TrainRequest {
  TrainConfig config;
  std::filesystem::path output;  ///< model folder
  bool resume = false;           ///< go on from training/state.safetensors
  std::string init_from;         ///< model folder or checkpoint, "" = none
  /// Holds for init_from, and for output where a run goes on.
  Links links = Links::kInside;
  bool dry_run = false;  ///< check, report sizes, train nothing
  /// The device on which the model is trained: train_model opens
  /// training.device.
  at::Device device = at::kCPU;
  /// Keys of [text] that the configuration gives, and does not leave at their
  /// defaults: with init_from they must fit that model's text.
  std::set<std::string> named_text;
  /// Limits of length that nothing gives fit the training text (train/length_limits.h).
  bool fits_lengths = false;
  /// The minutes of a run (training.max_minutes) count from here.
  std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
};

/// Trains a model. Prepares text and data in the model folder,
/// trains, validates, keeps checkpoints; on a stop signal it saves and
/// throws Interrupted. Error when another process trains in the folder.
/// Resuming gives the bits of an uninterrupted run. Several processes train one
/// model when each makes this call with the same request and its communicator.
void train_model(
    const TrainRequest& request,
    std::shared_ptr<Communicator> communicator = std::make_shared<SingleProcess>());

}  // namespace seqconv::internal
