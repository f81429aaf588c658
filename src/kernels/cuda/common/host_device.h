#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "kernels/cuda/storage.h"

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

/// What lets one source be compiled by nvcc for the device and by g++ for the
/// tests: SEQCONV_HD marks index arithmetic, SEQCONV_DEVICE what only kernels
/// (or their emulation on the host) call.
#ifdef __CUDACC__
#define SEQCONV_HD __host__ __device__ inline
#define SEQCONV_DEVICE __device__ inline
#else
#define SEQCONV_HD inline
#define SEQCONV_DEVICE inline
#endif
#ifdef __CUDA_ARCH__
#define SEQCONV_UNROLL _Pragma("unroll")
#define SEQCONV_NO_UNROLL _Pragma("unroll 1")
#else
#define SEQCONV_UNROLL
#define SEQCONV_NO_UNROLL
#endif

namespace seqconv::internal::kernels::cuda {

/// f(0), f(1), ..., f(N - 1), one after the other: no loop on the device.
template <int N, class F>
SEQCONV_HD void unroll(const F& f) {
  SEQCONV_UNROLL
  for (int i = 0; i < N; ++i)
    f(i);
}

template <class I>
SEQCONV_HD constexpr I min(I a, I b) {
  return a < b ? a : b;
}
template <class I>
SEQCONV_HD constexpr I max(I a, I b) {
  return a < b ? b : a;
}
template <class I>
SEQCONV_HD constexpr I clamped(I value, I low, I high) {
  return max(low, min(value, high));
}
template <class I>
SEQCONV_HD constexpr I chunks_of(I count, I size) {
  return (count + size - 1) / size;
}
template <class I>
SEQCONV_HD constexpr I round_up(I count, I size) {
  return chunks_of(count, size) * size;
}

/// i * step for numbers that are not negative: one instruction on the device.
SEQCONV_HD int64_t offset_of(int i, int step) {
  return static_cast<int64_t>(uint64_t{static_cast<uint32_t>(i)} * static_cast<uint32_t>(step));
}

/// Division by a number that is known before: n / d for n * d < 2^32.
struct Divisor {
  uint32_t factor = 0;  ///< 2^32 / d, rounded up; 0 for d = 1

  Divisor() = default;
  SEQCONV_HD explicit Divisor(int d) : factor(0xffffffffu / static_cast<uint32_t>(d) + 1) {}
  SEQCONV_HD int quotient(int n) const {
    const uint64_t product = uint64_t{factor} * static_cast<uint32_t>(n);
    return factor == 0 ? n : static_cast<int>(product >> 32);
  }
};

SEQCONV_HD float widen(float value) {
  return value;
}
SEQCONV_HD float widen(BFloat16 value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16);
}

SEQCONV_HD float widen(Float16 value) {
#ifdef __CUDACC__
  return __half2float(__ushort_as_half(value.bits));
#else
  return static_cast<float>(std::bit_cast<_Float16>(value.bits));
#endif
}

/// Rounds to nearest, ties to even.
template <class S>
SEQCONV_HD S narrow(float value) {
  if constexpr (std::is_same_v<S, float>)
    return value;
#ifdef __CUDACC__
  else if constexpr (std::is_same_v<S, BFloat16>)
    return S{__bfloat16_as_ushort(__float2bfloat16_rn(value))};
  else
    return S{__half_as_ushort(__float2half_rn(value))};
#else
  else if constexpr (std::is_same_v<S, BFloat16>)
    return to_bfloat16(value);
  else
    return std::bit_cast<S>(static_cast<_Float16>(value));
#endif
}

/// Two floats, rounded, as a word: the first lies lower.
template <class S>
SEQCONV_HD uint32_t narrow_pair(float low, float high) {
#ifdef __CUDA_ARCH__
  if constexpr (std::is_same_v<S, BFloat16>) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const uint32_t*>(&pair);
  } else {
    const __half2 pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<const uint32_t*>(&pair);
  }
#else
  return narrow<S>(low).bits | static_cast<uint32_t>(narrow<S>(high).bits) << 16;
#endif
}

/// Row r of a tensor whose rows are so many bytes apart: one instruction.
template <class S>
SEQCONV_HD S* row_at(S* rows, int r, int row_bytes) {
  using Byte = std::conditional_t<std::is_const_v<S>, const char, char>;
  return reinterpret_cast<S*>(reinterpret_cast<Byte*>(rows) + static_cast<int64_t>(r) * row_bytes);
}
/// f(R{}) for the type of what stands beside tensors of S: S, or float beside
/// 16 bits.
template <class S, class F>
SEQCONV_DEVICE void with_storage(Storage storage, const F& f) {
  if constexpr (sizeof(S) == 2) {
    if (storage == Storage::kFloat)
      return f(float{});
  }
  f(S{});
}

/// Real rows of sequence b: its length, clamped to what is there.
SEQCONV_HD int64_t valid_steps(const int64_t* lengths, int64_t b, int64_t steps) {
  return lengths == nullptr ? steps : clamped<int64_t>(lengths[b], 0, steps);
}

}  // namespace seqconv::internal::kernels::cuda
