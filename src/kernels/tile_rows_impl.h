#pragma once

#include "kernels/simd.h"

namespace seqconv::kernels::SEQCONV_ISA {

inline float widen(BFloat16 value) {
  return __builtin_bit_cast(float, static_cast<uint32_t>(value.bits) << 16);
}
inline float widen(float value) {
  return value;
}
inline double widen(double value) {
  return value;
}

inline void narrow(float value, float& out) {
  out = value;
}
inline void narrow(double value, double& out) {
  out = value;
}
/// Round to nearest, ties to even; NaN stays NaN. Without branches.
inline void narrow(float value, BFloat16& out) {
  const uint32_t word = __builtin_bit_cast(uint32_t, value);
  const uint32_t rounded = (word + 0x7fffu + ((word >> 16) & 1u)) >> 16;
  const uint32_t quiet = (word >> 16) | 0x40u;
  out.bits = static_cast<uint16_t>(value != value ? quiet : rounded);
}

template <class S, class A>
void load_rows(
    const S* src,
    int64_t stride,
    int64_t rows,
    int64_t width,
    A* __restrict dst,
    int64_t pitch) {
  for (int64_t t = 0; t < rows; ++t, src += stride, dst += pitch) {
    for (int64_t c = 0; c < width; ++c)
      dst[c] = widen(src[c]);
    for (int64_t c = width; c < pitch; ++c)
      dst[c] = 0;
  }
}

template <class S, class A>
void store_rows(
    const A* src,
    int64_t pitch,
    int64_t rows,
    int64_t width,
    S* __restrict dst,
    int64_t stride) {
  for (int64_t t = 0; t < rows; ++t, src += pitch, dst += stride)
    for (int64_t c = 0; c < width; ++c)
      narrow(src[c], dst[c]);
}

template <class S, class A>
void weighted_sum(
    const S* src,
    int64_t stride,
    const A* taps,
    int64_t rows,
    A* __restrict acc,
    int64_t width) {
  constexpr int64_t kBlock = 4 * kLanes<A>;
  int64_t c = 0;
  for (; c + kBlock <= width; c += kBlock) {
    A sums[kBlock];
    for (int64_t k = 0; k < kBlock; ++k)
      sums[k] = acc[c + k];
    for (int64_t i = 0; i < rows; ++i) {
      const A tap = taps[i];
      const S* const row = src + i * stride + c;
      for (int64_t k = 0; k < kBlock; ++k)
        sums[k] += tap * widen(row[k]);
    }
    for (int64_t k = 0; k < kBlock; ++k)
      acc[c + k] = sums[k];
  }
  for (int64_t i = 0; i < rows && c < width; ++i)
    for (int64_t k = c; k < width; ++k)
      acc[k] += taps[i] * widen(src[i * stride + k]);
}

}  // namespace seqconv::kernels::SEQCONV_ISA
