#include <ATen/Functions.h>
#include <torch/library.h>

#include "base/random.h"
#include "kernels/cuda/kept_elements.h"
#include "libtorch/ops/cuda_common.h"
#include "libtorch/ops/kept_elements.h"

namespace seqconv::ops {
using namespace internal;
namespace {

at::Tensor kept_elements_cuda(
    const at::Tensor& seed, at::IntArrayRef size, int64_t first, double p) {
  const c10::cuda::CUDAGuard guard(seed.device());
  const at::Tensor kept = at::empty(size, seed.options().dtype(at::kBool));
  kernels::cuda::launch(
      kernels::cuda::KeptElements{
          .seed = const_pointer<int64_t>(seed),
          .first = first,
          .count = kept.numel(),
          .threshold = drop_threshold(p),
          .kept = pointer<bool>(kept)},
      current_stream());
  return kept;
}

}  // namespace

TORCH_LIBRARY_IMPL(seqconv, CUDA, m) {
  m.impl(kKeptElements, kept_elements_cuda);
}

}  // namespace seqconv::ops
