#include "libtorch/ops/cuda_common.h"
#include "libtorch/ops/short_conv_device.h"

/// short_conv on CUDA devices.
namespace seqconv::ops {
namespace {

/// Kernels run on the present stream of x's device.
struct CudaRunner {
  using Guard = c10::cuda::CUDAGuard;
  template <class Pass>
  static int64_t workspace(const Pass& pass) {
    return kernels::cuda::short_conv_workspace(pass);
  }
  template <class Pass>
  static void launch(const Pass& pass) {
    kernels::cuda::launch(pass, current_stream());
  }
};

using ShortConvCuda = ShortConvDevice<CudaRunner>;

}  // namespace

TORCH_LIBRARY_IMPL(seqconv, CUDA, m) {
  register_impl<ShortConvCuda>(m);
  m.impl(kShortConvRollback, ShortConvCuda::rollback);
}

}  // namespace seqconv::ops
