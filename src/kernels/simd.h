#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/tile_ops.h"

/// Vectors of the instruction set that this translation unit is compiled for,
/// by the compilers' vector extension. SEQCONV_ISA names the namespace.
#ifndef SEQCONV_ISA
#error "define SEQCONV_ISA before including the tile kernels"
#endif

namespace seqconv::kernels::SEQCONV_ISA {

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
inline constexpr int kRegisters = 32;
#elif defined(__AVX2__)
inline constexpr int kVectorBytes = 32;
inline constexpr int kRegisters = 16;
#else
inline constexpr int kVectorBytes = 16;
inline constexpr int kRegisters = 16;
#endif

template <class A>
struct Simd;

template <>
struct Simd<float> {
  typedef float V __attribute__((vector_size(kVectorBytes)));
  typedef float Memory
      __attribute__((vector_size(kVectorBytes), aligned(4), may_alias));
  typedef int32_t Int __attribute__((vector_size(kVectorBytes)));
  static constexpr int kLanes = kVectorBytes / 4;
};

template <>
struct Simd<double> {
  typedef double V __attribute__((vector_size(kVectorBytes)));
  typedef double Memory
      __attribute__((vector_size(kVectorBytes), aligned(8), may_alias));
  typedef int64_t Int __attribute__((vector_size(kVectorBytes)));
  static constexpr int kLanes = kVectorBytes / 8;
};

template <class A>
using Vec = typename Simd<A>::V;

template <class A>
inline constexpr int kLanes = Simd<A>::kLanes;

template <class A>
inline Vec<A> load(const A* p) {
  return *reinterpret_cast<const typename Simd<A>::Memory*>(p);
}

template <class A>
inline void store(A* p, Vec<A> v) {
  *reinterpret_cast<typename Simd<A>::Memory*>(p) = v;
}

/// [a0+a1, a2+a3, ..., b0+b1, b2+b3, ...]
template <class A, size_t... I>
inline Vec<A> pair_sums(Vec<A> a, Vec<A> b, std::index_sequence<I...>) {
  const typename Simd<A>::Int even = {(2 * static_cast<int>(I))...};
  const typename Simd<A>::Int odd = {(2 * static_cast<int>(I) + 1)...};
  return __builtin_shuffle(a, b, even) + __builtin_shuffle(a, b, odd);
}

template <class A>
inline Vec<A> pair_sums(Vec<A> a, Vec<A> b) {
  return pair_sums<A>(a, b, std::make_index_sequence<kLanes<A>>());
}

/// Sums over the lanes of N vectors (N a power of two, at most kLanes): lane i
/// of the result, i < N, is the sum of v[i].
template <class A, int N>
inline Vec<A> lane_sums(const Vec<A>* v) {
  if constexpr (N == 1) {
    Vec<A> sum = v[0];
#pragma GCC unroll 8
    for (int n = 1; n < kLanes<A>; n *= 2)
      sum = pair_sums<A>(sum, sum);
    return sum;
  } else {
    Vec<A> w[N];
#pragma GCC unroll 16
    for (int i = 0; i < N; ++i)
      w[i] = v[i];
    int width = N;
#pragma GCC unroll 8
    for (int n = 1; n < kLanes<A>; n *= 2) {
      const int half = width > 1 ? width / 2 : 1;
#pragma GCC unroll 8
      for (int i = 0; i < half; ++i)
        w[i] = pair_sums<A>(
            w[2 * i < width ? 2 * i : 0],
            w[2 * i + 1 < width ? 2 * i + 1 : 0]);
      width = half;
    }
    return w[0];
  }
}

template <class A>
inline A lane_sum(Vec<A> v) {
  return lane_sums<A, 1>(&v)[0];
}

}  // namespace seqconv::kernels::SEQCONV_ISA
