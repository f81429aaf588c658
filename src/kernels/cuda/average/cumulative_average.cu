#include "kernels/cuda/average/average.h"
#include "kernels/cuda/common/launch.cuh"

namespace seqconv::internal::kernels::cuda {

template int64_t cumulative_average_workspace<float>(const AverageShape&);
template int64_t cumulative_average_workspace<BFloat16>(const AverageShape&);
template int64_t cumulative_average_workspace<Float16>(const AverageShape&);

SEQCONV_LAUNCH(CumulativeAverage)
SEQCONV_LAUNCH(CumulativeAverageStep)

}  // namespace seqconv::internal::kernels::cuda
