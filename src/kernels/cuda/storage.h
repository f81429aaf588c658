#pragma once

#include <cstdint>

#include "kernels/bfloat16.h"

/// The types that the CUDA kernels store tensors in, and how they are called.
struct CUstream_st;

namespace seqconv::internal::kernels {

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

/// Queues a pass of an operator, with the arguments of that pass, such as
/// ConvForward<S> (conv.h), TalkStep<S> (talk.h) or CumulativeAverage<S>
/// (cumulative_average.h). S is float, BFloat16 or Float16; sums are float32 or
/// float64. All pointers are device memory, dense and row-major; nothing that
/// they point to is read on the host, so that every call can be captured in a
/// graph. Returns when the work is queued on the stream; failures of the
/// runtime throw seqconv::internal::Error.
template <class Args>
void launch(const Args& args, Stream stream);

/// The type that a tensor beside x is stored in, where that is known at run
/// time only.
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
}  // namespace seqconv::internal::kernels
