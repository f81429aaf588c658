#include "kernels/cuda/common/launch.cuh"
#include "kernels/cuda/short_conv/run.h"

namespace seqconv::internal::kernels::cuda {

template <class S>
int64_t short_conv_workspace(const ShortConvForward<S>& args) {
  return forward_workspace(args);
}
template <class S>
int64_t short_conv_workspace(const ShortConvBackward<S>& args) {
  return backward_workspace(args);
}
template int64_t short_conv_workspace(const ShortConvForward<float>&);
template int64_t short_conv_workspace(const ShortConvForward<BFloat16>&);
template int64_t short_conv_workspace(const ShortConvForward<Float16>&);
template int64_t short_conv_workspace(const ShortConvBackward<float>&);
template int64_t short_conv_workspace(const ShortConvBackward<BFloat16>&);
template int64_t short_conv_workspace(const ShortConvBackward<Float16>&);

SEQCONV_LAUNCH(ShortConvForward)
SEQCONV_LAUNCH(ShortConvBackward)
SEQCONV_LAUNCH(ShortConvStep)

}  // namespace seqconv::internal::kernels::cuda
