#pragma once

#include <ATen/Functions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "ops/conv_checks.h"
#include "seqconv/kernels/cuda/storage.h"

/// What the operators on CUDA devices share. No value of a tensor is read on
/// the host, so that every call can be captured in a graph.
namespace seqconv::ops {

inline kernels::cuda::Storage storage_of(at::ScalarType type) {
  using kernels::cuda::Storage;
  switch (type) {
    case at::kFloat:
      return Storage::kFloat;
    case at::kDouble:
      return Storage::kDouble;
    case at::kBFloat16:
      return Storage::kBFloat16;
    case at::kHalf:
      return Storage::kFloat16;
    default:
      TORCH_INTERNAL_ASSERT(false, "unchecked type ", type);
  }
}

/// Calls f with a value of the storage type of x (already checked).
template <class F>
void dispatch_cuda_storage(at::ScalarType type, const F& f) {
  if (type == at::kHalf)
    return f(kernels::Float16{});
  dispatch_storage(type, f);
}

inline kernels::cuda::Stream current_stream() {
  return c10::cuda::getCurrentCUDAStream().stream();
}

inline at::Tensor dense_or_none(const OptionalTensor& tensor) {
  return tensor ? tensor->contiguous() : at::Tensor();
}

/// A position or seed on the device of x: a copy to it where it lies on the
/// host.
inline at::Tensor on_device_of(const at::Tensor& scalar, const at::Tensor& x) {
  return scalar.to(x.device(), /*non_blocking=*/true).contiguous();
}

/// A DropConnect mask as bytes.
inline at::Tensor mask_bytes(const OptionalTensor& mask) {
  if (!mask)
    return at::Tensor();
  return mask->scalar_type() == at::kBool ? mask->contiguous()
                                          : mask->ne(0).contiguous();
}

}  // namespace seqconv::ops
