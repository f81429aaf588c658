#pragma once

#include "libtorch/nn/dropout_plan.h"
#include "libtorch/ops/elementwise.h"
#include "seqconv/ops/conv_options.h"

namespace seqconv::internal {

/// DropConnect of weights that all rows share, of rate p with the plan's next
/// seed; nothing in evaluation.
inline ops::DropConnect drop_connect(double p, DropoutPlan& plan) {
  const ops::Seed seed = plan.next_seed();
  if (plan.rate(p) == 0)
    return {};
  return {.p = p, .seed = seed.as_tensor(), .mask = {}};
}

/// The same of logits [B, T, H, K], which each row has of its own.
inline ops::DropConnect drop_connect(double p, DropoutPlan& plan, const at::Tensor& logits) {
  if (plan.rate(p) == 0 || plan.part().rows == 0)
    return drop_connect(p, plan);
  return {
      .p = p,
      .seed = {},
      .mask = ops::kept_elements(logits.sizes(), p, plan.next_seed(), logits.device())};
}

}  // namespace seqconv::internal
