#pragma once

#include "kernels/parallel_for.h"

namespace seqconv::ops {
using namespace internal;

/// The threads of the tensor library (at::parallel_for), for kernels.
const kernels::ParallelFor& parallel_for();

}  // namespace seqconv::ops
