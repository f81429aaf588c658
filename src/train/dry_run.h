#pragma once

#include "train/trainer.h"

namespace seqconv::internal {

/// Says what train_model would do with the request in so many processes, on the
/// request's device: pairs, vocabulary, parameters, batches, updates, memory.
/// Trains a scratch model for some seconds on the first process's device, and says how fast that
/// was and how long the run will take. Writes nothing into the output folder. Throws what the run
/// itself would throw about configuration and files.
void report_dry_run(const TrainRequest& request, int64_t processes);

/// What the memory of a run depends on besides its configuration.
struct RunSize {
  int64_t parameters = 0;
  int64_t target_vocabulary = 0;
  int64_t processes = 1;
  bool on_cpu = true;
};

/// A guess at the memory of training in each process, for orientation.
struct MemoryEstimate {
  int64_t parameters = 0;   ///< bytes of values, gradients, optimiser state
  int64_t activations = 0;  ///< bytes kept for the backward pass of one batch
};
MemoryEstimate estimate_memory(const TrainConfig& config, const RunSize& size);

}  // namespace seqconv::internal
