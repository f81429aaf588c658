#include "kernels/cuda/common/launch.cuh"
#include "kernels/cuda/talk/run.h"

namespace seqconv::internal::kernels::cuda {

int64_t talk_backward_workspace(const TalkShape& shape) {
  return talk_workspace(shape);
}

SEQCONV_LAUNCH(TalkForward)
SEQCONV_LAUNCH(TalkBackward)
SEQCONV_LAUNCH(TalkStep)

}  // namespace seqconv::internal::kernels::cuda
