#include "kernels/cuda/common/launch.cuh"
#include "kernels/cuda/conv/run_backward.h"

namespace seqconv::kernels::cuda {

template <class S>
void conv_forward(const ConvForward<S>& args, Stream stream) {
  DeviceLauncher launcher(stream);
  run_conv_forward(launcher, args);
}

template <class S>
int64_t conv_backward_workspace(const ConvBackward<S>& args) {
  return backward_workspace(args, shared_limit_of(current_device()));
}

template <class S>
void conv_backward(const ConvBackward<S>& args, Stream stream) {
  DeviceLauncher launcher(stream);
  run_conv_backward(launcher, args);
}

template <class S>
void conv_step(const ConvStep<S>& args, Stream stream) {
  DeviceLauncher launcher(stream);
  run_conv_step(launcher, args);
}

#define SEQCONV_INSTANTIATE(S)                                      \
  template void conv_forward(const ConvForward<S>&, Stream);        \
  template int64_t conv_backward_workspace(const ConvBackward<S>&); \
  template void conv_backward(const ConvBackward<S>&, Stream);      \
  template void conv_step(const ConvStep<S>&, Stream);

SEQCONV_INSTANTIATE(float)
SEQCONV_INSTANTIATE(BFloat16)
SEQCONV_INSTANTIATE(Float16)

}  // namespace seqconv::kernels::cuda
