#include "libtorch/ops/parallel.h"

#include <ATen/Parallel.h>

#if AT_PARALLEL_OPENMP && !defined(_OPENMP)
#error "compile with -fopenmp: without it at::parallel_for uses one thread"
#endif

namespace seqconv::ops {

const kernels::ParallelFor& parallel_for() {
  static const kernels::ParallelFor threads =
      [](int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) {
        at::parallel_for(0, count, grain, body);
      };
  return threads;
}

}  // namespace seqconv::ops
