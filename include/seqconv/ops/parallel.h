#pragma once

#include "seqconv/kernels/parallel_for.h"

namespace seqconv::ops {

/// The threads of the tensor library (at::parallel_for), for kernels.
const kernels::ParallelFor& parallel_for();

}  // namespace seqconv::ops
