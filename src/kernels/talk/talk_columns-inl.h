#if defined(SEQCONV_KERNELS_TALK_COLUMNS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_TALK_COLUMNS_INL_H
#undef SEQCONV_KERNELS_TALK_COLUMNS_INL_H
#else
#define SEQCONV_KERNELS_TALK_COLUMNS_INL_H
#endif

#include <hwy/cache_control.h>

#include "kernels/common/cache_line.h"
#include "kernels/common/channels-inl.h"

/// Columns of channels that share TaLK's windows.
HWY_BEFORE_NAMESPACE();
namespace seqconv::internal::kernels::HWY_NAMESPACE {

/// The channels that one pass over the rows serves: NV vectors, or the first
/// `count` channels of one. kStreams: stores go past the caches.
template <class S, class A, int NV, bool kStreams>
struct Columns {
  int64_t count = 0;

  HWY_INLINE Vec<A> get(const S* p, int v) const {
    if constexpr (NV == 1)
      return load_some<A>(p, count);
    else
      return load_channels<NV>(p, v);
  }
  /// Stores vectors of(0), of(1), ...
  template <class Of>
  HWY_INLINE void put(S* p, const Of& of) const {
    constexpr int kShares = kSharing<S, NV>;
#pragma GCC unroll 4
    for (int v = 0; v < NV; v += kShares) {
      Vec<A> values[kShares];
#pragma GCC unroll 2
      for (int n = 0; n < kShares; ++n)
        values[n] = of(v + n);
      if constexpr (NV == 1)
        store_some<A>(values[0], p, count);
      else
        store_channels<kShares>(values, p + v * kLanes<A>, kStreams);
    }
  }
  /// A row of the next strip: so many would drive out each other, and the sums,
  /// from the first-level cache.
  HWY_INLINE void prefetch(const S* p) const {
    if (NV > 1)
      prefetch_lines<OwnCache::kSecond>(p, NV * kLanes<A> * int64_t{sizeof(S)});
  }
};

/// Whether all lanes are finite numbers.
template <class A, int NV>
HWY_INLINE bool all_finite(const Vec<A> (&v)[NV]) {
  const Tag<A> d;
  auto off = hn::Zero(d);
  for (int i = 0; i < NV; ++i)
    off = hn::Add(off, hn::Sub(v[i], v[i]));
  return hn::AllTrue(d, hn::Eq(off, hn::Zero(d)));
}

/// Whether Pass(tile).run() is true for all of the tile's channels, NV vectors
/// of them at a time as long as there are as many, and then fewer.
template <template <class, class, int, bool> class Pass, class S, class A, class Tile, int NV = 4>
bool for_columns(const Tile& tile) {
  constexpr int64_t kWidth = NV * kLanes<A>;
  Tile rest = tile;
  bool good = true;
  for (; rest.channels >= (NV == 1 ? 1 : kWidth); rest.advance(kWidth))
    if (NV > 1 && tile.streaming)
      good = Pass<S, A, NV, true>(rest).run() && good;
    else
      good = Pass<S, A, NV, false>(rest).run() && good;
  if (NV > 1 && tile.streaming)
    hwy::FlushStream();
  if constexpr (NV > 1)
    if (rest.channels > 0)
      good = for_columns<Pass, S, A, Tile, NV / 2>(rest) && good;
  return good;
}

}  // namespace seqconv::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
