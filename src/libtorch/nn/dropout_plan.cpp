#include "libtorch/nn/dropout_plan.h"

#include <ATen/ops/empty.h>

#include "libtorch/ops/device.h"

namespace seqconv::internal {
namespace {

/// More than a micro-batch of most models asks for: one copy each.
constexpr uint64_t kSeedsAtATime = 256;

}  // namespace

ops::Seed DropoutPlan::next_seed() {
  const uint64_t place = place_++;
  ops::Seed seed = place_seed(key_, place);
  seed.rows_before = part_.rows_before;
  seed.rows = part_.rows;
  if (!active_ || device_.is_cpu())
    return seed;
  const uint64_t index = place % kSeedsAtATime;
  if (index == 0) {
    const at::Tensor seeds = at::empty({kSeedsAtATime}, at::kLong);
    int64_t* values = seeds.mutable_data_ptr<int64_t>();
    for (uint64_t i = 0; i < kSeedsAtATime; ++i)
      values[i] = static_cast<int64_t>(place_seed(key_, place + i));
    seeds_ = ops::to_device(seeds, device_);
  }
  seed.tensor = seeds_.select(0, static_cast<int64_t>(index));
  return seed;
}

}  // namespace seqconv::internal
