#if defined(SEQCONV_KERNELS_TAP_PRODUCTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_TAP_PRODUCTS_INL_H
#undef SEQCONV_KERNELS_TAP_PRODUCTS_INL_H
#else
#define SEQCONV_KERNELS_TAP_PRODUCTS_INL_H
#endif

#include "kernels/tile_ops.h"
#include "kernels/vectors-inl.h"

/// Gradients of taps: scalar products of rows of the output's gradient with
/// rows of the input.
HWY_BEFORE_NAMESPACE();
namespace seqconv::kernels::HWY_NAMESPACE {

template <class S, class A>
void stage(const StageTile<S>& tile, A* out) {
  const Tag<A> d;
  constexpr int64_t L = kLanes<A>;
  const auto whole = tile.channels / L * L;
  for (int64_t r = 0; r < tile.rows; ++r, out += kStagePitch) {
    if (r < tile.first || r >= tile.last) {
      for (int64_t c = 0; c < kStagePitch; c += L)
        hn::StoreU(hn::Zero(d), d, out + c);
      continue;
    }
    const S* const in = tile.in + r * tile.in_stride;
    for (int64_t c = 0; c < whole; c += L)
      hn::StoreU(load_wide(in + c), d, out + c);
    for (int64_t c = whole; c < kStagePitch; c += L)
      hn::StoreU(
          c < tile.channels ? load_some<A>(in + c, tile.channels - c)
                            : hn::Zero(d),
          d,
          out + c);
  }
}

/// acc[t][j] += <g[t], x[t + j]> over channels [c, c + lanes), for NT rows and
/// NJ taps: every row of x is read once for all rows of g. With NA = 1 rows of
/// acc instead of NT all rows add to one. With kPitch > 0 that is the stride of
/// x, known when compiling. kFirst: acc is set, not added to.
template <
    class S,
    class A,
    int NT,
    int NJ,
    int64_t kPitch,
    bool kTail,
    bool kFirst = false,
    int NA>
HWY_INLINE void add_products(
    const ProductTile<S, A>& tile,
    int64_t t,
    int64_t j,
    int64_t c,
    Vec<A> (&acc)[NA][NJ]) {
  Vec<A> grad[NT];
#pragma GCC unroll 8
  for (int i = 0; i < NT; ++i) {
    const S* const g = tile.g + (t + i) * tile.g_stride + c;
    grad[i] = kTail ? load_some<A>(g, tile.channels - c) : load_wide(g);
  }
  const int64_t pitch = kPitch > 0 ? kPitch : tile.x_stride;
  const A* const x = tile.x + (t + j) * pitch + c;
#pragma GCC unroll 24
  for (int r = 0; r < NT + NJ - 1; ++r) {
    const Vec<A> row = in_register(load(x + r * pitch));
#pragma GCC unroll 8
    for (int i = 0; i < NT; ++i)
      if (r - i >= 0 && r - i < NJ)
        acc[i % NA][r - i] = kFirst
            ? hn::Mul(grad[i], row)
            : hn::MulAdd(grad[i], row, acc[i % NA][r - i]);
  }
}

/// What comes next, with the products of so many rows.
template <int kRows, class S, class A>
HWY_INLINE void fetch_amid(const ProductTile<S, A>& tile) {
  for (int i = 0; tile.ahead != nullptr && i < kRows; ++i)
    tile.ahead->template next_row<kLinesOfRow<S>>();
}

template <class A, int NT, int NJ>
HWY_INLINE void clear(Vec<A> (&acc)[NT][NJ]) {
#pragma GCC unroll 8
  for (int i = 0; i < NT; ++i)
#pragma GCC unroll 16
    for (int k = 0; k < NJ; ++k)
      acc[i][k] = hn::Zero(Tag<A>());
}

/// Adds the products of channels [c, ...).
template <class S, class A, int NT, int NJ, int64_t kPitch, int NA>
HWY_INLINE void add_all_products(
    const ProductTile<S, A>& tile,
    int64_t t,
    int64_t j,
    int64_t c,
    Vec<A> (&acc)[NA][NJ]) {
  for (; c + kLanes<A> <= tile.channels; c += kLanes<A>)
    add_products<S, A, NT, NJ, kPitch, false>(tile, t, j, c, acc);
  if (c < tile.channels)
    add_products<S, A, NT, NJ, kPitch, true>(tile, t, j, c, acc);
}

/// Products of NT rows and NJ taps whose sums over lanes, which fill one
/// vector, are not finished: that is done amid the products of the next block,
/// which do not wait for it.
template <class A, int NT, int NJ>
struct UnfinishedBlock {
  static_assert(NT * NJ == kLanes<A>);
  static constexpr int kVectors = HWY_MAX(1, NT* NJ / 2);

  Vec<A> v[kVectors];
  A* out = nullptr;  ///< of the first row; null: there is no block

  HWY_INLINE void set(Vec<A> (&acc)[NT][NJ], A* to) {
#if HWY_TARGET == HWY_SCALAR
    v[0] = acc[0][0];
#else
#pragma GCC unroll 8
    for (int i = 0; i < kVectors; ++i)
      v[i] = add_neighbours<static_cast<int>(sizeof(A)), A>(
          (&acc[0][0])[2 * i],
          (&acc[0][0])[2 * i + 1]);
#endif
    out = to;
  }

  HWY_INLINE void finish(bool add, int64_t out_stride) {
#if HWY_TARGET != HWY_SCALAR
    if constexpr (kVectors > 1)
      add_all_neighbours<2 * static_cast<int>(sizeof(A)), A, kVectors>(v);
#endif
    // All NJ are written: the next block, or nobody, reads those beyond K.
    const hn::CappedTag<A, NJ> d;
    HWY_ALIGN A sums[kLanes<A>];
    if constexpr (NT > 2)
      hn::Store(v[0], Tag<A>(), sums);
#pragma GCC unroll 8
    for (int i = 0; i < NT; ++i) {
      auto sum = part(i, sums);
      if (add)
        sum = hn::Add(sum, hn::LoadU(d, out + i * out_stride));
      hn::StoreU(sum, d, out + i * out_stride);
    }
  }

 private:
  /// The sums of row i.
  HWY_INLINE hn::Vec<hn::CappedTag<A, NJ>> part(int i, const A* sums) const {
#if HWY_TARGET == HWY_SCALAR
    return v[0];
#else
    const hn::CappedTag<A, NJ> d;
    if constexpr (NT == 1)
      return v[0];
    else if constexpr (NT == 2)
      return i == 0 ? hn::LowerHalf(d, v[0]) : hn::UpperHalf(d, v[0]);
    else
      return hn::LoadU(d, sums + i * NJ);
#endif
  }
};

/// Products of all rows. With kPitch or kWidth > 0 these are the stride of x
/// and the channels, known when compiling.
template <class S, class A, int NJ, int64_t kPitch, int64_t kWidth>
HWY_NOINLINE void
product_rows(const ProductTile<S, A>& any, A* out, int64_t out_stride) {
  constexpr int NT = kLanes<A> / NJ;
  // A row of x that lies anywhere takes registers that overlapping needs.
  constexpr bool kOverlap = kPitch > 0;
  // A copy, which stores do not change.
  ProductTile<S, A> tile = any;
  if constexpr (kWidth > 0)
    tile.channels = kWidth;
  UnfinishedBlock<A, NT, NJ> last;
  int64_t t = 0;
  for (; t + NT <= tile.rows; t += NT) {
    fetch_amid<NT>(tile);
    for (int64_t j = 0; j < tile.kernel_size; j += NJ) {
      Vec<A> acc[NT][NJ];
      int64_t c = 0;
      if (tile.channels >= kLanes<A>) {
        add_products<S, A, NT, NJ, kPitch, false, true>(tile, t, j, c, acc);
        c += kLanes<A>;
      } else {
        clear<A, NT, NJ>(acc);
      }
      if (kOverlap && last.out != nullptr)
        last.finish(tile.add, out_stride);
      add_all_products<S, A, NT, NJ, kPitch>(tile, t, j, c, acc);
      last.set(acc, out + t * out_stride + j);
      if (!kOverlap)
        last.finish(tile.add, out_stride);
    }
  }
  if (kOverlap && last.out != nullptr)
    last.finish(tile.add, out_stride);
  // The last rows, one product at a time.
  for (; t < tile.rows; ++t)
    for (int64_t j = 0; j < tile.kernel_size; ++j) {
      Vec<A> acc[1][1];
      clear<A, 1, 1>(acc);
      add_all_products<S, A, 1, 1, kPitch>(tile, t, j, 0, acc);
      A& to = out[t * out_stride + j];
      to = (tile.add ? to : A(0)) + lane_sum<A>(acc[0][0]);
    }
}

template <class S, class A, int64_t kPitch, int64_t kWidth>
HWY_INLINE void
product_rows_any(const ProductTile<S, A>& tile, A* out, int64_t out_stride) {
  constexpr int L = kLanes<A>;
  if constexpr (L >= 8) {
    if (tile.kernel_size <= 4)
      return product_rows<S, A, 4, kPitch, kWidth>(tile, out, out_stride);
    return product_rows<S, A, 8, kPitch, kWidth>(tile, out, out_stride);
  } else {
    product_rows<S, A, L, kPitch, 0>(tile, out, out_stride);
  }
}

template <class S, class A>
void tap_products(const ProductTile<S, A>& tile, A* out, int64_t out_stride) {
  // Heads of one stage are the common ones.
  if (tile.channels != kStagePitch)
    product_rows_any<S, A, 0, 0>(tile, out, out_stride);
  else if (tile.x_stride != kStagePitch)
    product_rows_any<S, A, 0, kStagePitch>(tile, out, out_stride);
  else
    product_rows_any<S, A, kStagePitch, kStagePitch>(tile, out, out_stride);
}

/// Sets of sums of NJ taps, as many as registers hold: a sum waits for the one
/// before, and few of them would leave the multipliers idle.
constexpr int sets_of_sums(int NJ) {
  if (kRegisters == 32)
    return NJ > 8 ? 1 : NJ > 4 ? 2 : 4;
  return NJ > 4 ? 1 : 2;
}

/// sums[k] = the products of tap j + k, lane by lane. Row by row: a column of
/// one vector would read a line here and a line there.
template <class S, class A, int NJ>
HWY_INLINE void
sum_products(const ProductTile<S, A>& tile, int64_t j, Vec<A> (&sums)[NJ]) {
  constexpr int kRows = 4, kSets = sets_of_sums(NJ);
  Vec<A> acc[kSets][NJ];
  clear<A>(acc);
  int64_t t = 0;
  for (; t + kRows <= tile.rows; t += kRows) {
    fetch_amid<kRows>(tile);
    add_all_products<S, A, kRows, NJ, 0>(tile, t, j, 0, acc);
  }
  for (; t < tile.rows; ++t)
    add_all_products<S, A, 1, NJ, 0>(tile, t, j, 0, acc);
#pragma GCC unroll 16
  for (int k = 0; k < NJ; ++k) {
    sums[k] = acc[0][k];
#pragma GCC unroll 4
    for (int i = 1; i < kSets; ++i)
      sums[k] = hn::Add(sums[k], acc[i][k]);
  }
}

template <class S, class A, int NJ>
HWY_INLINE void
shared_products(const ProductTile<S, A>& tile, int64_t j, double* sums) {
  Vec<A> products[NJ];
  sum_products<S, A, NJ>(tile, j, products);
  for (int k = 0; k < NJ; ++k)
    sums[j + k] += static_cast<double>(lane_sum<A>(products[k]));
}

/// sums [K, channels].
template <class S, class A, int NJ>
HWY_INLINE void
lane_products(const ProductTile<S, A>& tile, int64_t j, double* sums) {
  const int64_t C = tile.channels;
  for (int64_t c = 0; c < C; c += kLanes<A>) {
    ProductTile<S, A> column = tile;
    column.g += c;
    column.x += c;
    column.channels = HWY_MIN(C - c, int64_t{kLanes<A>});
    Vec<A> products[NJ];
    sum_products<S, A, NJ>(column, j, products);
    HWY_ALIGN A lanes[kLanes<A>];
    for (int k = 0; k < NJ; ++k) {
      hn::Store(products[k], Tag<A>(), lanes);
      for (int64_t i = 0; i < column.channels; ++i)
        sums[(j + k) * C + c + i] += static_cast<double>(lanes[i]);
    }
  }
}

/// Calls PRODUCTS<S, A, NJ>(tile, j, sums) for all taps, many at a time.
#define SEQCONV_FOR_TAPS(PRODUCTS)              \
  int64_t j = 0;                                \
  const int64_t K = tile.kernel_size;           \
  if constexpr (kRegisters == 32) {             \
    for (; j + 16 <= K; j += 16)                \
      PRODUCTS<S, A, 16>(tile, j, sums);        \
    if (K - j == 15)                            \
      return PRODUCTS<S, A, 15>(tile, j, sums); \
  }                                             \
  for (; j + 8 <= K; j += 8)                    \
    PRODUCTS<S, A, 8>(tile, j, sums);           \
  if (K - j == 7)                               \
    return PRODUCTS<S, A, 7>(tile, j, sums);    \
  if (j + 3 <= K) {                             \
    PRODUCTS<S, A, 3>(tile, j, sums);           \
    j += 3;                                     \
  }                                             \
  for (; j < K; ++j)                            \
  PRODUCTS<S, A, 1>(tile, j, sums)

template <class S, class A>
void shared_tap_products(const ProductTile<S, A>& tile, double* sums) {
  SEQCONV_FOR_TAPS(shared_products);
}

template <class S, class A>
void lane_tap_products(const ProductTile<S, A>& tile, double* sums) {
  SEQCONV_FOR_TAPS(lane_products);
}
#undef SEQCONV_FOR_TAPS

}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
