#if defined(SEQCONV_KERNELS_TAP_PRODUCTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_TAP_PRODUCTS_INL_H
#undef SEQCONV_KERNELS_TAP_PRODUCTS_INL_H
#else
#define SEQCONV_KERNELS_TAP_PRODUCTS_INL_H
#endif

#include "kernels/common/cache_line.h"
#include "kernels/common/vectors-inl.h"
#include "kernels/conv/conv_kernels.h"

/// Gradients of taps: scalar products of rows of the output's gradient with
/// rows of the input, of every position, or added up over the rows where all
/// of them share their taps.
HWY_BEFORE_NAMESPACE();
namespace seqconv::internal::kernels::HWY_NAMESPACE {

template <bool kWhole, class S, class A>
HWY_INLINE void stage_row(const S* row, int64_t channels, A* out) {
  constexpr int64_t L = kLanes<A>;
#pragma GCC unroll 16
  for (int64_t c = 0; c < kStagePitch; c += L) {
    auto v = hn::Zero(Tag<A>());
    if (kWhole || c < channels)
      v = kWhole ? load_wide(row + c) : load_some<A>(row + c, channels - c);
    hn::StoreU(v, Tag<A>(), out + c);
  }
}

template <class S, class A>
void stage(const StageTile<S>& tile, A* out) {
  for (int64_t r = 0; r < tile.rows; ++r, out += kStagePitch) {
    const bool exists = r >= tile.first && r < tile.last;
    const S* const in = tile.in + r * tile.in_stride;
    if (tile.ahead != 0)
      prefetch_lines<OwnCache::kSecond>(in + tile.ahead, tile.channels * int64_t{sizeof(S)});
    // Heads of one stage are the common ones.
    if (exists && tile.channels == kStagePitch)
      stage_row<true>(in, kStagePitch, out);
    else
      stage_row<false>(in, exists ? tile.channels : 0, out);
  }
}

/// acc[..][j] += g[t] * x[t + j], lane by lane in all channels, for NT rows and
/// NJ taps: every row of x is read once for all rows of g. The rows add to NA
/// sets of sums in turns.
template <class A, int NT, int NJ, int NA>
HWY_INLINE void add_lane_products(
    const ProductTile<A>& tile, int64_t t, int64_t j, Vec<A> (&acc)[NA][NJ]) {
  const A* g = tile.g + t * tile.g_stride;
  const A* x = tile.x + (t + j) * tile.x_stride;
  for (int64_t c = 0; c < tile.channels; c += kLanes<A>) {
    Vec<A> grad[NT];
#pragma GCC unroll 4
    for (int i = 0; i < NT; ++i)
      grad[i] = load(g + i * tile.g_stride + c);
#pragma GCC unroll 24
    for (int r = 0; r < NT + NJ - 1; ++r) {
      const Vec<A> row = in_register(load(x + r * tile.x_stride + c));
#pragma GCC unroll 4
      for (int i = 0; i < NT; ++i)
        if (r - i >= 0 && r - i < NJ)
          acc[i % NA][r - i] = hn::MulAdd(grad[i], row, acc[i % NA][r - i]);
    }
  }
}

template <class A, int NA, int NJ>
HWY_INLINE void set_zero(Vec<A> (&acc)[NA][NJ]) {
#pragma GCC unroll 4
  for (int i = 0; i < NA; ++i)
#pragma GCC unroll 16
    for (int k = 0; k < NJ; ++k)
      acc[i][k] = hn::Zero(Tag<A>());
}

/// sums[k] = the sum over the lanes of acc[k], k < N, the same wherever that
/// is; sums has room for a vector.
template <class A, int N>
HWY_INLINE void sum_lanes(const Vec<A>* acc, A* sums) {
  constexpr int L = kLanes<A>;
#pragma GCC unroll 16
  for (int k = 0; k < N; k += L) {
    Vec<A> v[L];
#pragma GCC unroll 16
    for (int i = 0; i < L; ++i)
      v[i] = acc[(k + i) % N];
    hn::StoreU(lane_sums<A>(v), Tag<A>(), sums + k);
  }
}

/// Products of NT rows from t on, NJ taps at a time.
template <class A, int NT, int NJ>
HWY_INLINE void product_block(const ProductTile<A>& tile, int64_t t, A* out, int64_t out_stride) {
  const hn::CappedTag<A, NJ> d;
  HWY_ALIGN A sums[HWY_MAX(NT * NJ, kLanes<A>)];
  for (int64_t j = 0; j < tile.kernel_size; j += NJ) {
    Vec<A> acc[NT][NJ];
    set_zero<A>(acc);
    add_lane_products<A, NT, NJ>(tile, t, j, acc);
    sum_lanes<A, NT * NJ>(&acc[0][0], sums);
#pragma GCC unroll 4
    for (int i = 0; i < NT; ++i) {
      A* const to = out + (t + i) * out_stride + j;
      auto sum = hn::LoadU(d, sums + i * NJ);
      if (tile.add)
        sum = hn::Add(sum, hn::LoadU(d, to));
      hn::StoreU(sum, d, to);
    }
  }
}

HWY_INLINE void prefetch_row(const RowsAhead& rows, int64_t t) {
  prefetch_lines<OwnCache::kSecond>(
      static_cast<const char*>(rows.first) + t * rows.stride, rows.bytes);
}

/// As many products at once as a vector has lanes.
template <class A, int NJ>
HWY_INLINE void product_rows(const ProductTile<A>& tile, A* out, int64_t out_stride) {
  constexpr int NT = kLanes<A> / NJ;
  int64_t t = 0;
  for (; t + NT <= tile.rows; t += NT) {
    for (int64_t i = t; i < t + NT; ++i) {
      prefetch_row(tile.logits, i);
      prefetch_row(tile.grad_logits, i);
    }
    product_block<A, NT, NJ>(tile, t, out, out_stride);
  }
  for (; t < tile.rows; ++t)
    product_block<A, 1, NJ>(tile, t, out, out_stride);
}

template <class A>
void tap_products(const ProductTile<A>& tile, A* out, int64_t out_stride) {
  constexpr int L = kLanes<A>;
  if (tile.kernel_size <= 4)
    product_rows<A, HWY_MIN(L, 4)>(tile, out, out_stride);
  else
    product_rows<A, HWY_MIN(L, 8)>(tile, out, out_stride);
}

/// acc[k] = the products of tap j + k, summed over rows, lane by lane, in as many
/// sets as registers hold: a sum waits for the one before, and few of them would
/// leave the multipliers idle.
template <class A, int NJ>
HWY_INLINE void sum_products(const ProductTile<A>& tile, int64_t j, Vec<A> (&sum)[NJ]) {
  constexpr int kRows = 4, kSets = HWY_MIN(4, HWY_MAX(1, kRegisters / 2 / NJ));
  Vec<A> acc[kSets][NJ];
  set_zero<A>(acc);
  int64_t t = 0;
  for (; t + kRows <= tile.rows; t += kRows)
    add_lane_products<A, kRows, NJ>(tile, t, j, acc);
  for (; t < tile.rows; ++t)
    add_lane_products<A, 1, NJ>(tile, t, j, acc);
#pragma GCC unroll 16
  for (int k = 0; k < NJ; ++k) {
    sum[k] = acc[0][k];
#pragma GCC unroll 4
    for (int i = 1; i < kSets; ++i)
      sum[k] = hn::Add(sum[k], acc[i][k]);
  }
}

/// Calls work<NJ>(j) for groups of NJ taps from j on. Products that nobody asked
/// for take less time than another turn: rows of x reach to tap_pitch(K).
template <class A, class Work>
HWY_INLINE void for_tap_groups(int64_t K, const Work& work) {
  int64_t j = 0;
  if constexpr (kRegisters == 32)
    for (; K - j > 8; j += 16)
      work.template operator()<16>(j);
  for (; K - j > 4; j += 8)
    work.template operator()<8>(j);
  for (; j < K; j += 4)
    work.template operator()<4>(j);
}

template <class A>
void shared_tap_products(const ProductTile<A>& tile, double* sums) {
  for_tap_groups<A>(tile.kernel_size, [&]<int NJ>(int64_t j) HWY_ATTR {
    Vec<A> acc[NJ];
    sum_products<A, NJ>(tile, j, acc);
    A products[HWY_MAX(NJ, kLanes<A>)];
    sum_lanes<A, NJ>(acc, products);
    const int64_t count = HWY_MIN(int64_t{NJ}, tile.kernel_size - j);
    for (int64_t k = 0; k < count; ++k)
      sums[j + k] += static_cast<double>(products[k]);
  });
}

}  // namespace seqconv::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
