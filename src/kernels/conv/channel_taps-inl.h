#if defined(SEQCONV_KERNELS_CHANNEL_TAPS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_CHANNEL_TAPS_INL_H
#undef SEQCONV_KERNELS_CHANNEL_TAPS_INL_H
#else
#define SEQCONV_KERNELS_CHANNEL_TAPS_INL_H
#endif

#include "kernels/common/cache_line.h"
#include "kernels/conv/conv_kernels.h"
#include "kernels/conv/tap_products-inl.h"

/// Heads whose channels are fewer than a vector's lanes: from taps of heads to
/// taps of channels, which are loaded as their inputs are, and from products of
/// channels to gradients of taps of heads.
HWY_BEFORE_NAMESPACE();
namespace seqconv::internal::kernels::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR
/// K taps for each of a vector's channels, neighbours -> tap j of all in v[j].
template <int K, class A>
HWY_INLINE void load_taps(const A* p, Vec<A> (&v)[4]) {
  const Tag<A> d;
  if constexpr (K == 2)
    hn::LoadInterleaved2(d, p, v[0], v[1]);
  else if constexpr (K == 3)
    hn::LoadInterleaved3(d, p, v[0], v[1], v[2]);
  else
    hn::LoadInterleaved4(d, p, v[0], v[1], v[2], v[3]);
}

/// A row of heads of one channel whose taps lie without gaps; returns channels done.
template <int K, class A>
HWY_INLINE int64_t spread_neighbours(const A* taps, const SpreadTile<A>& tile, A* out) {
  int64_t c = 0;
  for (; c + kLanes<A> <= tile.channels; c += kLanes<A>) {
    Vec<A> v[4];
    if (tile.fetches)
      prefetch_lines<OwnCache::kSecond>(
          taps + kChannelTapRows * tile.row_stride + c * K, K * kLanes<A> * int64_t{sizeof(A)});
    load_taps<K, A>(taps + c * K, v);
#pragma GCC unroll 4
    for (int j = 0; j < K; ++j)
      if (j < tile.kernel_size)
        hn::StoreU(v[j], Tag<A>(), out + j * tile.pitch + c);
  }
  return c;
}

/// Does so for heads whose channels divide a vector's, with the taps of a vector's
/// heads within kVectors of them: these are read, never beyond the last tap.
template <int kVectors, class A>
HWY_INLINE int64_t spread_within(const A* taps, const SpreadTile<A>& tile, A* out) {
  constexpr int64_t L = kLanes<A>;
  const Tag<A> d;
  const hn::RebindToSigned<Tag<A>> di;
  const int64_t step = L / tile.head_channels * tile.head_stride;
  const int64_t heads = tile.channels / tile.head_channels;
  const int64_t last = (heads - 1) * tile.head_stride + tile.kernel_size - kVectors * L;
  const auto places = hn::LoadU(di, tile.places);
  int64_t c = 0;
  for (int64_t first = 0; last >= 0 && c + L <= tile.channels; c += L, first += step) {
    const int64_t from = HWY_MIN(first, last);
    const auto low = load(taps + from);
    const auto high = kVectors > 1 ? load(taps + from + L) : low;
    for (int64_t j = 0; j < tile.kernel_size; ++j) {
      const auto of = hn::Add(places, hn::Set(di, static_cast<TapIndex<A>>(first - from + j)));
      auto v = low;
      if constexpr (kVectors == 1) {
        v = hn::TableLookupLanes(low, hn::IndicesFromVec(d, of));
      } else {
        const auto lanes = hn::IndicesFromVec(d, hn::And(of, hn::Set(di, TapIndex<A>{L - 1})));
        v = hn::IfThenElse(
            hn::RebindMask(d, hn::Lt(of, hn::Set(di, TapIndex<A>{L}))),
            hn::TableLookupLanes(low, lanes),
            hn::TableLookupLanes(high, lanes));
      }
      hn::StoreU(v, d, out + j * tile.pitch + c);
    }
  }
  return c;
}
#endif

/// Channels [c, pitch) of a row, those behind the last as the last.
template <class A>
HWY_INLINE void spread_any(const A* taps, const SpreadTile<A>& tile, int64_t c, A* out) {
  const Tag<A> d;
  const hn::RebindToSigned<Tag<A>> di;
  for (; c < tile.channels; c += kLanes<A>) {
    const auto places = hn::LoadU(di, tile.places + c);
    for (int64_t j = 0; j < tile.kernel_size; ++j)
      hn::StoreU(hn::GatherIndex(d, taps + j, places), d, out + j * tile.pitch + c);
  }
}

/// Channels of a row that a quick way has done.
template <class A>
HWY_INLINE int64_t spread_quickly(const A* taps, const SpreadTile<A>& tile, A* out) {
#if HWY_TARGET != HWY_SCALAR
  const int64_t R = tile.head_channels, stride = tile.head_stride;
  if (R == 1) {
    switch (stride) {
      case 2:
        return spread_neighbours<2>(taps, tile, out);
      case 3:
        return spread_neighbours<3>(taps, tile, out);
      case 4:
        return spread_neighbours<4>(taps, tile, out);
      default:
        return 0;
    }
  }
  if (kLanes<A> % R == 0 && stride <= R)
    return spread_within<1>(taps, tile, out);
  if (kLanes<A> % R == 0 && stride <= 2 * R)
    return spread_within<2>(taps, tile, out);
#endif
  return 0;
}

template <class A>
void spread(const SpreadTile<A>& tile) {
  for (int64_t t = 0; t < tile.rows; ++t) {
    const A* const taps = tile.taps + t * tile.row_stride;
    A* const out = tile.out + t * tile.kernel_size * tile.pitch;
    spread_any(taps, tile, spread_quickly(taps, tile, out), out);
  }
}

/// Sums over rows as those of shared_tap_products, one for every channel.
template <class A>
void channel_products(const ProductTile<A>& tile, A* out) {
  ProductTile<A> column = tile;
  column.channels = kLanes<A>;
  for (int64_t c = 0; c < tile.channels; c += kLanes<A>) {
    column.g = tile.g + c;
    column.x = tile.x + c;
    for_tap_groups<A>(tile.kernel_size, [&]<int NJ>(int64_t j) HWY_ATTR {
      Vec<A> acc[NJ];
      sum_products<A, NJ>(column, j, acc);
#pragma GCC unroll 16
      for (int k = 0; k < NJ; ++k)
        hn::StoreU(acc[k], Tag<A>(), out + (j + k) * kStagePitch + c);
    });
  }
}

#if HWY_TARGET != HWY_SCALAR
/// The sums over R neighbouring lanes, a power of two, in all of these.
template <class A>
HWY_INLINE Vec<A> sum_neighbours(Vec<A> v, int64_t R) {
  const Tag<A> d;
  if (R >= 2)
    v = hn::Add(v, hn::Reverse2(d, v));
  if constexpr (kLanes<A> >= 4)
    if (R >= 4)
      v = hn::Add(v, hn::Reverse4(d, v));
  if constexpr (kLanes<A> >= 8)
    if (R >= 8)
      v = hn::Add(v, hn::Reverse8(d, v));
  return v;
}
#endif

#if HWY_TARGET != HWY_SCALAR
/// The products of a vector of heads of R channels, R a power of two below its
/// lanes: taps of R at a time lie beside each other in their heads' lanes.
template <class A>
HWY_INLINE void heads_within(
    const ProductTile<A>& tile, const A* g, const A* x, int64_t R, int64_t pitch, A* out) {
  constexpr int64_t L = kLanes<A>;
  const Tag<A> d;
  const hn::RebindToSigned<Tag<A>> di;
  const auto lane = hn::And(hn::Iota(di, 0), hn::Set(di, static_cast<TapIndex<A>>(R - 1)));
  const auto grad = load(g);
  for (int64_t j = 0; j < tile.kernel_size; j += R) {
    const int64_t count = HWY_MIN(R, tile.kernel_size - j);
    auto sums = hn::Zero(d);
    for (int64_t r = 0; r < count; ++r) {
      const auto product = hn::Mul(grad, load(x + (j + r) * tile.x_stride));
      const auto own = hn::RebindMask(d, hn::Eq(lane, hn::Set(di, static_cast<TapIndex<A>>(r))));
      sums = hn::IfThenElse(own, sum_neighbours<A>(product, R), sums);
    }
    HWY_ALIGN A lanes[L];
    hn::Store(sums, d, lanes);
    for (int64_t h = 0; h < L / R; ++h)
      for (int64_t r = 0; r < count; ++r)
        out[h * pitch + j + r] = lanes[h * R + r];
  }
}
#endif

/// Products of row t -> gradients of taps of heads, `pitch` apart.
template <class A>
HWY_INLINE void head_row(const ProductTile<A>& tile, int64_t t, int64_t R, int64_t pitch, A* out) {
  constexpr int64_t L = kLanes<A>;
  const int64_t K = tile.kernel_size;
  const A* const g = tile.g + t * tile.g_stride;
  const A* const x = tile.x + t * tile.x_stride;
  int64_t c = 0;
#if HWY_TARGET != HWY_SCALAR
  if (R == 1 && pitch == 4)
    for (; c + L <= tile.channels; c += L) {
      const auto grad = load(g + c);
      const auto product = [&](int64_t j) HWY_ATTR {
        return hn::Mul(grad, load(x + HWY_MIN(j, K - 1) * tile.x_stride + c));
      };
      hn::StoreInterleaved4(product(0), product(1), product(2), product(3), Tag<A>(), out + 4 * c);
    }
  if (R > 1 && L % R == 0)
    for (; c + L <= tile.channels; c += L)
      heads_within(tile, g + c, x + c, R, pitch, out + c / R * pitch);
#endif
  if (c == tile.channels)
    return;
  for (int64_t j = 0; j < K; ++j) {
    HWY_ALIGN A products[kStagePitch];
    for (int64_t i = c; i < tile.channels; i += L)
      hn::Store(hn::Mul(load(g + i), load(x + j * tile.x_stride + i)), Tag<A>(), products + i - c);
    for (int64_t h = c / R; h * R < tile.channels; ++h) {
      A sum = products[h * R - c];
      for (int64_t r = 1; r < R; ++r)
        sum += products[h * R + r - c];
      out[h * pitch + j] = sum;
    }
  }
}

template <class A>
void head_products(const ProductTile<A>& tile, int64_t R, A* out, int64_t out_stride) {
  const int64_t pitch = tap_pitch(tile.kernel_size);
  for (int64_t t = 0; t < tile.rows; ++t)
    head_row(tile, t, R, pitch, out + t * out_stride);
}

}  // namespace seqconv::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
