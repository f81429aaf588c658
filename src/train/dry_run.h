#pragma once

#include "seqconv/train/trainer.h"

namespace seqconv {

/// Says what train_model would do with the request: pairs, vocabulary,
/// parameters, batches, updates, memory. Writes nothing into the output folder.
/// Throws what the run itself would throw about configuration and files.
void report_dry_run(const TrainRequest& request);

/// A guess at the memory of training, for orientation.
struct MemoryEstimate {
  int64_t parameters = 0;   ///< bytes of values, gradients, optimiser state
  int64_t activations = 0;  ///< bytes kept for the backward pass of one batch
};
MemoryEstimate estimate_memory(
    const TrainConfig& config,
    int64_t parameter_count,
    int64_t target_vocabulary);

}  // namespace seqconv
