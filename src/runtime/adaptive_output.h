#pragma once

#include "runtime/output.h"

namespace seqconv::internal::runtime {

/// Adaptive softmax (Grave et al. 2017).
std::unique_ptr<Output> make_adaptive_output(
    const ModelOptions& options, const Weights& weights, int64_t vocabulary);

}  // namespace seqconv::internal::runtime
