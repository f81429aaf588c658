#pragma once

#include "base/checksum.h"
#include "train/options.h"

/// Checks of [data], and what its files hold.
namespace seqconv::internal {

/// UsageError for keys that name no sample, contradict each other, or are a
/// language model's.
void check_pair_data(const DataOptions& data);

/// UsageError for cuts that leave nothing, or more than the model takes.
void check_cuts(const DataOptions& data, const ModelOptions& model);

/// Checksums of all files of [data], made by `sum`; Error naming the key of a
/// file that cannot be read.
Json describe_files(const DataOptions& data, uint64_t (*sum)(const RootedPath&) = file_checksum);

}  // namespace seqconv::internal
