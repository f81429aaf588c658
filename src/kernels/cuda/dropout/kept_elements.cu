#include "kernels/cuda/common/launch.cuh"
#include "kernels/cuda/dropout/kept_elements.h"

namespace seqconv::internal::kernels::cuda {

template void launch(const KeptElements& args, Stream);

}  // namespace seqconv::internal::kernels::cuda
