#include "kernels/cuda/conv_backward_run.h"
#include "kernels/cuda/launch.cuh"

/// dynamicconv: a kernel for every position of a head.
namespace seqconv::kernels::cuda {

template <class S>
void dynamicconv_forward(const ConvForward<S>& args, Stream stream) {
  DeviceLauncher launcher(stream);
  run_conv_forward<LogitsOf::kPosition>(launcher, args);
}

template <class S>
int64_t dynamicconv_backward_workspace(const ConvBackward<S>& args) {
  return backward_workspace(args, LogitsOf::kPosition, device_shared_limit());
}

template <class S>
void dynamicconv_backward(const ConvBackward<S>& args, Stream stream) {
  DeviceLauncher launcher(stream);
  run_conv_backward<LogitsOf::kPosition>(launcher, args);
}

template <class S>
void dynamicconv_step(const ConvStep<S>& args, Stream stream) {
  DeviceLauncher launcher(stream);
  run_conv_step<LogitsOf::kPosition>(launcher, args);
}

#define SEQCONV_INSTANTIATE(S)                                             \
  template void dynamicconv_forward(const ConvForward<S>&, Stream);        \
  template int64_t dynamicconv_backward_workspace(const ConvBackward<S>&); \
  template void dynamicconv_backward(const ConvBackward<S>&, Stream);      \
  template void dynamicconv_step(const ConvStep<S>&, Stream);

SEQCONV_INSTANTIATE(float)
SEQCONV_INSTANTIATE(double)
SEQCONV_INSTANTIATE(BFloat16)
SEQCONV_INSTANTIATE(Float16)

}  // namespace seqconv::kernels::cuda
