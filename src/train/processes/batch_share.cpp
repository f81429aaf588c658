#include "train/processes/batch_share.h"

#include <algorithm>

namespace seqconv::internal {

int64_t update_size(int64_t batches, int64_t per_update, int64_t update) {
  return std::clamp<int64_t>(batches - update * per_update, 0, per_update);
}

int64_t updates_per_epoch(int64_t batches, int64_t per_update) {
  return (batches + per_update - 1) / per_update;
}

std::vector<UpdateBatch> batches_of(
    std::span<const uint32_t> order,
    int64_t per_update,
    int64_t update,
    int64_t rank,
    int64_t size) {
  const int64_t count = update_size(static_cast<int64_t>(order.size()), per_update, update);
  std::vector<UpdateBatch> share;
  for (int64_t place = rank; place < count; place += size)
    share.push_back({place, order[static_cast<size_t>(update * per_update + place)]});
  return share;
}

}  // namespace seqconv::internal
