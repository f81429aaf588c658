#if defined(SEQCONV_KERNELS_ROWS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_ROWS_INL_H
#undef SEQCONV_KERNELS_ROWS_INL_H
#else
#define SEQCONV_KERNELS_ROWS_INL_H
#endif

#include <hwy/cache_control.h>

#include "kernels/common/cache_line.h"
#include "kernels/common/exp-inl.h"
#include "kernels/conv/conv_kernels.h"

/// Rows on their own: sums with weights, and what ends a convolution.
HWY_BEFORE_NAMESPACE();
namespace seqconv::internal::kernels::HWY_NAMESPACE {

template <class S, class A>
void narrow(const A* src, int64_t count, S* dst, bool streaming) {
  constexpr int64_t L = kLanes<A>;
  int64_t i = 0;
  if (streaming && reinterpret_cast<uintptr_t>(dst) % kCacheLine == 0)
    for (; i + L <= count; i += L)
      store_streaming(load(src + i), dst + i);
  for (; i < count; i += L)
    store_some<A>(load_some<A>(src + i, count - i), dst + i, count - i);
}

/// NV whole vectors of columns from c on, or, with NV = 1, the first `count` lanes.
template <int NV, bool kByChannel, bool kAdded, class S, class A>
HWY_INLINE void weighted_columns(const RowSum<S, A>& of, int64_t c) {
  constexpr int L = kLanes<A>;
  const int64_t count = of.width - c;
  const auto columns = [&](const auto* row, int v) HWY_ATTR {
    return NV > 1 ? load_wide(row + v * L) : load_some<A>(row, count);
  };
  Vec<A> sums[NV];
#pragma GCC unroll 4
  for (int v = 0; v < NV; ++v)
    sums[v] = columns(of.acc + c, v);
  for (int64_t i = 0; i < of.rows; ++i) {
    const A* const tap = of.taps + i * of.tap_r;
    const auto all = hn::Set(Tag<A>(), *tap);
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) {
      const auto row = columns(of.src + i * of.stride + c, v);
      sums[v] = hn::MulAdd(kByChannel ? columns(tap + c, v) : all, row, sums[v]);
      if constexpr (kAdded)
        sums[v] = hn::MulAdd(columns(of.added + i * of.added_r + c, v), row, sums[v]);
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < NV; ++v)
    store_some<A>(sums[v], of.acc + c + v * L, count - v * L);
}

template <bool kByChannel, bool kAdded, class S, class A>
HWY_INLINE void weighted_sum_of(const RowSum<S, A>& of) {
  constexpr int64_t L = kLanes<A>;
  int64_t c = 0;
  for (; c + 4 * L <= of.width; c += 4 * L)
    weighted_columns<4, kByChannel, kAdded>(of, c);
  for (; c < of.width; c += L)
    weighted_columns<1, kByChannel, kAdded>(of, c);
}

template <class S, class A>
void weighted_sum(const RowSum<S, A>& of) {
  if (of.added == nullptr)
    of.by_channel ? weighted_sum_of<true, false>(of) : weighted_sum_of<false, false>(of);
  else
    of.by_channel ? weighted_sum_of<true, true>(of) : weighted_sum_of<false, true>(of);
}

/// e^-|x| of N vectors, and the logistic function of them.
template <class A, int N>
HWY_INLINE void sigmoids(const Vec<A>* x, Vec<A> (&s)[N]) {
  const Tag<A> d;
  const auto one = hn::Set(d, A(1));
#pragma GCC unroll 4
  for (int i = 0; i < N; ++i)
    s[i] = hn::Neg(hn::Abs(x[i]));
  exps_of_negative<A>(s);
#pragma GCC unroll 4
  for (int i = 0; i < N; ++i) {
    const auto top = hn::IfThenElse(hn::Lt(x[i], hn::Zero(d)), s[i], one);
    s[i] = hn::Div(top, hn::Add(one, s[i]));
  }
}

/// x -> x * sigmoid(x) of N vectors, together: one would wait for itself.
template <class A, int N>
HWY_INLINE void silus(Vec<A>* x) {
  Vec<A> s[N];
  sigmoids<A, N>(x, s);
#pragma GCC unroll 4
  for (int i = 0; i < N; ++i)
    x[i] = hn::Mul(x[i], s[i]);
}

/// Four whole vectors of a row from c on.
template <class S, class A>
HWY_INLINE void end_vectors(const RowEnd<S, A>& row, int64_t c) {
  constexpr int L = kLanes<A>;
  Vec<A> z[4];
#pragma GCC unroll 4
  for (int v = 0; v < 4; ++v) {
    z[v] = load(row.acc + c + v * L);
    if (row.bias != nullptr)
      z[v] = hn::Add(z[v], load(row.bias + c + v * L));
  }
  if (row.activation == ConvActivation::kSilu)
    silus<A, 4>(z);
#pragma GCC unroll 4
  for (int v = 0; v < 4; ++v) {
    if (row.residual != nullptr)
      z[v] = hn::Add(z[v], load_wide(row.residual + c + v * L));
    row.streaming ? store_streaming(z[v], row.y + c + v * L)
                  : store_narrow(z[v], row.y + c + v * L);
  }
}

template <class S, class A>
HWY_INLINE void end_row(const RowEnd<S, A>& row) {
  constexpr int64_t L = kLanes<A>;
  int64_t c = 0;
  for (; c + 4 * L <= row.width; c += 4 * L)
    end_vectors(row, c);
  for (; c < row.width; c += L) {
    const int64_t count = row.width - c;
    auto z = load_some<A>(row.acc + c, count);
    if (row.bias != nullptr)
      z = hn::Add(z, load_some<A>(row.bias + c, count));
    if (row.activation == ConvActivation::kSilu)
      silus<A, 1>(&z);
    if (row.residual != nullptr)
      z = hn::Add(z, load_some<A>(row.residual + c, count));
    store_some<A>(z, row.y + c, count);
  }
}

template <class S, class A>
void end_rows(RowEnd<S, A> rows) {
  for (int64_t r = 0; r < rows.rows; ++r) {
    end_row(rows);
    rows.acc += rows.acc_stride;
    rows.y += rows.stride;
    if (rows.residual != nullptr)
      rows.residual += rows.stride;
  }
  if (rows.streaming)
    hwy::FlushStream();
}

/// With s = sigmoid(z): silu'(z) = s (1 + z (1 - s)).
template <class S, class A>
void silu_backward(const A* z, const A* bias, const S* grad_y, A* grad_z, int64_t width) {
  const auto one = hn::Set(Tag<A>(), A(1));
  for (int64_t c = 0; c < width; c += kLanes<A>) {
    const int64_t count = width - c;
    auto at = load_some<A>(z + c, count);
    if (bias != nullptr)
      at = hn::Add(at, load_some<A>(bias + c, count));
    Vec<A> s[1];
    sigmoids<A, 1>(&at, s);
    const auto slope = hn::Mul(s[0], hn::MulAdd(at, hn::Sub(one, s[0]), one));
    store_some<A>(hn::Mul(load_some<A>(grad_y + c, count), slope), grad_z + c, count);
  }
}

}  // namespace seqconv::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
