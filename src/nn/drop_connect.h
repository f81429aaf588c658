#pragma once

#include <ATen/ops/scalar_tensor.h>

#include "seqconv/nn/dropout_plan.h"
#include "seqconv/ops/common.h"

namespace seqconv {

/// DropConnect of rate p with the plan's next seed; nothing in evaluation.
inline ops::DropConnect drop_connect(double p, DropoutPlan& plan) {
  const auto seed = static_cast<int64_t>(plan.next_seed());
  if (plan.rate(p) == 0)
    return {};
  return {.p = p, .seed = at::scalar_tensor(seed, at::kLong), .mask = {}};
}

}  // namespace seqconv
