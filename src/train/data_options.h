#pragma once

#include "train/options.h"

/// Checks of [data] for translation.
namespace seqconv::internal {

/// UsageError for keys that name no sample, contradict each other, or are a
/// language model's.
void check_pair_data(const DataOptions& data);

/// UsageError for cuts that leave nothing, or more than the model takes.
void check_cuts(const DataOptions& data, const ModelOptions& model);

}  // namespace seqconv::internal
