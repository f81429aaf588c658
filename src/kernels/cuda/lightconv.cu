#include "kernels/cuda/conv_backward_run.h"
#include "kernels/cuda/launch.cuh"

/// lightconv: one kernel for all positions of a head (with renormalised edges,
/// one for each).
namespace seqconv::kernels::cuda {

template <class S>
void lightconv_forward(const ConvForward<S>& args, Stream stream) {
  DeviceLauncher launcher(stream);
  run_conv_forward<LogitsOf::kHead>(launcher, args);
}

template <class S>
int64_t lightconv_backward_workspace(const ConvBackward<S>& args) {
  return backward_workspace(args, LogitsOf::kHead, device_shared_limit());
}

template <class S>
void lightconv_backward(const ConvBackward<S>& args, Stream stream) {
  DeviceLauncher launcher(stream);
  run_conv_backward<LogitsOf::kHead>(launcher, args);
}

template <class S>
void lightconv_step(const ConvStep<S>& args, Stream stream) {
  DeviceLauncher launcher(stream);
  run_conv_step<LogitsOf::kHead>(launcher, args);
}

#define SEQCONV_INSTANTIATE(S)                                           \
  template void lightconv_forward(const ConvForward<S>&, Stream);        \
  template int64_t lightconv_backward_workspace(const ConvBackward<S>&); \
  template void lightconv_backward(const ConvBackward<S>&, Stream);      \
  template void lightconv_step(const ConvStep<S>&, Stream);

SEQCONV_INSTANTIATE(float)
SEQCONV_INSTANTIATE(double)
SEQCONV_INSTANTIATE(BFloat16)
SEQCONV_INSTANTIATE(Float16)

}  // namespace seqconv::kernels::cuda
