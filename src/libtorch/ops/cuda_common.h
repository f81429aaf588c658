#pragma once

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "libtorch/ops/cuda_storage.h"
#include "libtorch/ops/kernel_arguments.h"

/// Helpers shared by the operators on CUDA devices. No value of a tensor is read on
/// the host, so that every call can be captured in a graph.
namespace seqconv::ops {
using namespace internal;

inline kernels::cuda::Stream current_stream() {
  return c10::cuda::getCurrentCUDAStream().stream();
}

/// A position or seed on the device of x: a copy to it where it lies on the
/// host.
inline at::Tensor on_device_of(const at::Tensor& scalar, const at::Tensor& x) {
  // Pinned memory is read when the copy runs: the caller may change it by then.
  const bool non_blocking = !scalar.is_pinned();
  return scalar.to(x.device(), non_blocking).contiguous();
}

}  // namespace seqconv::ops
