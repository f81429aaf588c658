#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace seqconv::internal {

/// A batch of an update.
struct UpdateBatch {
  int64_t place = 0;   ///< among those of the update, whoever takes them
  uint32_t index = 0;  ///< Batcher::batch(index)
};

/// Batches of which update `update` (from 0) of an epoch consists, whatever the
/// number of processes: `per_update`, and at the epoch's end what is left.
int64_t update_size(int64_t batches, int64_t per_update, int64_t update);

/// Updates of an epoch.
int64_t updates_per_epoch(int64_t batches, int64_t per_update);

/// Those of them that process `rank` of `size` takes, every size-th; `order` is
/// that of the epoch, Batcher::order(epoch).
std::vector<UpdateBatch> batches_of(
    std::span<const uint32_t> order,
    int64_t per_update,
    int64_t update,
    int64_t rank,
    int64_t size);

}  // namespace seqconv::internal
