#include "kernels/cuda/common/launch.cuh"
#include "kernels/cuda/talk/run.h"

namespace seqconv::kernels::cuda {

int64_t talk_backward_workspace(const TalkShape& shape) {
  return talk_workspace(shape);
}

template <class S>
void talk_forward(const TalkForward<S>& args, Stream stream) {
  DeviceLauncher launcher(stream);
  run_talk_forward(launcher, args);
}

template <class S>
void talk_backward(const TalkBackward<S>& args, Stream stream) {
  DeviceLauncher launcher(stream);
  run_talk_backward(launcher, args);
}

template <class S>
void talk_step(const TalkStep<S>& args, Stream stream) {
  DeviceLauncher launcher(stream);
  run_talk_step(launcher, args);
}

#define SEQCONV_INSTANTIATE(S)                                 \
  template void talk_forward(const TalkForward<S>&, Stream);   \
  template void talk_backward(const TalkBackward<S>&, Stream); \
  template void talk_step(const TalkStep<S>&, Stream);

SEQCONV_INSTANTIATE(float)
SEQCONV_INSTANTIATE(BFloat16)
SEQCONV_INSTANTIATE(Float16)

}  // namespace seqconv::kernels::cuda
