#pragma once

#include <cstdint>

#include "seqconv/kernels/bfloat16.h"

/// The types that the CUDA kernels store tensors in.
struct CUstream_st;

namespace seqconv::kernels {

/// An IEEE binary16 number, the way tensors store it. As with BFloat16,
/// kernels widen on load and round on store.
struct Float16 {
  uint16_t bits = 0;
};
template <>
struct Accumulator<Float16> {
  using Type = float;
};

namespace cuda {

/// A stream of the CUDA runtime (cudaStream_t), named without its headers.
using Stream = CUstream_st*;

/// What a tensor beside x is stored in, where that is known at run time only.
enum class Storage : int { kFloat, kBFloat16, kFloat16 };

template <class S>
struct StorageOf;
template <>
struct StorageOf<float> {
  static constexpr Storage kValue = Storage::kFloat;
};
template <>
struct StorageOf<BFloat16> {
  static constexpr Storage kValue = Storage::kBFloat16;
};
template <>
struct StorageOf<Float16> {
  static constexpr Storage kValue = Storage::kFloat16;
};

}  // namespace cuda
}  // namespace seqconv::kernels
