#include "kernels/cuda/average/run.h"
#include "kernels/cuda/common/launch.cuh"

namespace seqconv::kernels::cuda {

template <class S>
int64_t cumulative_average_workspace(const AverageShape& shape) {
  return average_workspace<S>(shape);
}

template <class S>
void cumulative_average(const CumulativeAverage<S>& args, Stream stream) {
  DeviceLauncher launcher(stream);
  run_average<AverageOrder::kForward>(launcher, args);
}

template <class S>
void cumulative_average_backward(
    const CumulativeAverage<S>& args,
    Stream stream) {
  DeviceLauncher launcher(stream);
  run_average<AverageOrder::kBackward>(launcher, args);
}

template <class S>
void cumulative_average_step(
    const CumulativeAverageStep<S>& args,
    Stream stream) {
  DeviceLauncher launcher(stream);
  run_average_step(launcher, args);
}

#define SEQCONV_INSTANTIATE(S)                                           \
  template int64_t cumulative_average_workspace<S>(const AverageShape&); \
  template void cumulative_average(const CumulativeAverage<S>&, Stream); \
  template void cumulative_average_backward(                             \
      const CumulativeAverage<S>&,                                       \
      Stream);                                                           \
  template void cumulative_average_step(                                 \
      const CumulativeAverageStep<S>&,                                   \
      Stream);

SEQCONV_INSTANTIATE(float)
SEQCONV_INSTANTIATE(BFloat16)
SEQCONV_INSTANTIATE(Float16)

}  // namespace seqconv::kernels::cuda
