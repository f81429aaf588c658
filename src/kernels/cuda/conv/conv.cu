#include "kernels/cuda/common/launch.cuh"
#include "kernels/cuda/conv/run.h"

namespace seqconv::internal::kernels::cuda {

template <class S>
int64_t conv_backward_workspace(const ConvBackward<S>& args) {
  return backward_workspace(args, DeviceLauncher(nullptr).device());
}
template int64_t conv_backward_workspace(const ConvBackward<float>&);
template int64_t conv_backward_workspace(const ConvBackward<BFloat16>&);
template int64_t conv_backward_workspace(const ConvBackward<Float16>&);

SEQCONV_LAUNCH(ConvForward)
SEQCONV_LAUNCH(ConvBackward)
SEQCONV_LAUNCH(ConvStep)

}  // namespace seqconv::internal::kernels::cuda
