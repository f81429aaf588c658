#pragma once

#include "kernels/simd.h"

namespace seqconv::kernels::SEQCONV_ISA {

/// Rows (time) x vectors (channels) of accumulators kept in registers.
inline constexpr int kRowBlock = 6;
inline constexpr int kVectorBlock = kRegisters == 32 ? 4 : 2;

/// NT outputs of NV vectors. Every output sums its taps in ascending order,
/// whatever NT is, so that results do not depend on where a block begins.
/// Needs K >= NT - 1.
template <class A, int NT, int NV>
inline void convolve_block(
    const ConvTile<A>& tile,
    const A* x,
    const A* taps,
    const A* init,
    A* out) {
  constexpr int L = kLanes<A>;
  Vec<A> acc[NT][NV];
#pragma GCC unroll 8
  for (int t = 0; t < NT; ++t)
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v)
      acc[t][v] = load<A>(init + v * L);
  const auto add_row = [&](int64_t r, int first, int last)
      __attribute__((always_inline)) {
    Vec<A> row[NV];
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v)
      row[v] = load<A>(x + r * tile.pitch + v * L);
#pragma GCC unroll 8
    for (int t = 0; t < NT; ++t)
      if (t >= first && t <= last) {
        const A tap = taps[t * tile.tap_stride + r - t];
#pragma GCC unroll 4
        for (int v = 0; v < NV; ++v)
          acc[t][v] += tap * row[v];
      }
  };
#pragma GCC unroll 8
  for (int r = 0; r < NT - 1; ++r)
    add_row(r, 0, r);
  for (int64_t r = NT - 1; r < tile.kernel_size; ++r)
    add_row(r, 0, NT - 1);
#pragma GCC unroll 8
  for (int e = 0; e < NT - 1; ++e)
    add_row(tile.kernel_size + e, e + 1, NT - 1);
#pragma GCC unroll 8
  for (int t = 0; t < NT; ++t)
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v)
      store<A>(out + t * tile.pitch + v * L, acc[t][v]);
}

template <class A, int NV>
inline void convolve_columns(const ConvTile<A>& tile, int64_t column) {
  int64_t t = 0;
  const auto block = [&]<int NT>() {
    convolve_block<A, NT, NV>(
        tile,
        tile.x + t * tile.pitch + column,
        tile.taps + t * tile.tap_stride,
        tile.init + column,
        tile.out + t * tile.pitch + column);
    t += NT;
  };
  if (tile.kernel_size >= kRowBlock)
    while (t + kRowBlock <= tile.rows)
      block.template operator()<kRowBlock>();
  if (tile.kernel_size >= 2)
    while (t + 2 <= tile.rows)
      block.template operator()<2>();
  while (t < tile.rows)
    block.template operator()<1>();
}

template <class A>
void convolve(const ConvTile<A>& tile) {
  constexpr int64_t kBlock = kVectorBlock * kLanes<A>;
  int64_t column = 0;
  for (; column + kBlock <= tile.pitch; column += kBlock)
    convolve_columns<A, kVectorBlock>(tile, column);
  for (; column < tile.pitch; column += kLanes<A>)
    convolve_columns<A, 1>(tile, column);
}

/// NJ taps at a time, all rows and channels in registers.
template <class A, int NJ>
inline void
shared_taps(const A* x, const A* g, int64_t pitch, int64_t rows, double* sums) {
  constexpr int L = kLanes<A>;
  Vec<A> acc[NJ] = {};
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t c = 0; c < pitch; c += L) {
      const Vec<A> grad = load<A>(g + t * pitch + c);
#pragma GCC unroll 16
      for (int j = 0; j < NJ; ++j)
        acc[j] += grad * load<A>(x + (t + j) * pitch + c);
    }
  for (int j = 0; j < NJ; ++j)
    sums[j] += lane_sum<A>(acc[j]);
}

template <class A>
void shared_tap_gradient(
    const A* x,
    const A* g,
    int64_t pitch,
    int64_t rows,
    int64_t kernel_size,
    double* sums) {
  int64_t j = 0;
  for (; j + 8 <= kernel_size; j += 8)
    shared_taps<A, 8>(x + j * pitch, g, pitch, rows, sums + j);
  for (; j + 4 <= kernel_size; j += 4)
    shared_taps<A, 4>(x + j * pitch, g, pitch, rows, sums + j);
  for (; j < kernel_size; ++j)
    shared_taps<A, 1>(x + j * pitch, g, pitch, rows, sums + j);
}

/// NJ taps of one position: NJ dot products, added up over lanes together.
template <class A, int NJ>
inline void tap_products(const A* x, const A* g, int64_t pitch, A* grad) {
  constexpr int L = kLanes<A>;
  Vec<A> acc[NJ] = {};
  for (int64_t c = 0; c < pitch; c += L) {
    const Vec<A> row = load<A>(g + c);
#pragma GCC unroll 16
    for (int j = 0; j < NJ; ++j)
      acc[j] += row * load<A>(x + j * pitch + c);
  }
  const Vec<A> sums = lane_sums<A, NJ>(acc);
  if constexpr (NJ == L) {
    store<A>(grad, load<A>(grad) + sums);
  } else {
#pragma GCC unroll 16
    for (int j = 0; j < NJ; ++j)
      grad[j] += sums[j];
  }
}

template <class A>
void tap_gradient(
    const A* x,
    const A* g,
    int64_t pitch,
    int64_t rows,
    int64_t kernel_size,
    A* grad,
    int64_t grad_pitch) {
  constexpr int L = kLanes<A>;
  for (int64_t t = 0; t < rows; ++t) {
    const A* const first = x + t * pitch;
    A* const out = grad + t * grad_pitch;
    const A* const row = g + t * pitch;
    int64_t j = 0;
    for (; j + L <= kernel_size; j += L)
      tap_products<A, L>(first + j * pitch, row, pitch, out + j);
    if constexpr (L > 4)
      for (; j + 4 <= kernel_size; j += 4)
        tap_products<A, 4>(first + j * pitch, row, pitch, out + j);
    if constexpr (L > 2)
      for (; j + 2 <= kernel_size; j += 2)
        tap_products<A, 2>(first + j * pitch, row, pitch, out + j);
    for (; j < kernel_size; ++j)
      tap_products<A, 1>(first + j * pitch, row, pitch, out + j);
  }
}

template <class A>
void column_sums(const A* g, int64_t pitch, int64_t rows, double* sums) {
  constexpr int L = kLanes<A>;
  for (int64_t c = 0; c < pitch; c += L) {
    Vec<A> acc = {};
    for (int64_t t = 0; t < rows; ++t)
      acc += load<A>(g + t * pitch + c);
    for (int i = 0; i < L; ++i)
      sums[c + i] += acc[i];
  }
}

}  // namespace seqconv::kernels::SEQCONV_ISA
