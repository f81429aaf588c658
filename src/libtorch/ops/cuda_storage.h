#pragma once

#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>

#include "kernels/cuda/storage.h"

/// The types of tensors as kernels of CUDA devices know them.
namespace seqconv::ops {
using namespace internal;

inline kernels::cuda::Storage storage_of(at::ScalarType type) {
  using kernels::cuda::Storage;
  switch (type) {
    case at::kFloat:
      return Storage::kFloat;
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
    f(kernels::Float16{});
  else if (type == at::kBFloat16)
    f(kernels::BFloat16{});
  else
    f(float{});
}

}  // namespace seqconv::ops
