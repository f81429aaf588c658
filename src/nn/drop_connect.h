#pragma once

#include <ATen/ops/scalar_tensor.h>

#include "seqconv/nn/dropout_plan.h"
#include "seqconv/ops/common.h"

namespace seqconv {

/// DropConnect of rate p with the plan's next seed; nothing in evaluation.
inline ops::DropConnect drop_connect(double p, DropoutPlan& plan) {
  const ops::Seed seed = plan.next_seed();
  if (plan.rate(p) == 0)
    return {};
  const at::Tensor there = seed.tensor.defined()
      ? seed.tensor
      : at::scalar_tensor(static_cast<int64_t>(seed.value), at::kLong);
  return {.p = p, .seed = there, .mask = {}};
}

}  // namespace seqconv
