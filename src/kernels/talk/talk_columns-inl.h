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
namespace seqconv::kernels::HWY_NAMESPACE {

/// How the vectors of a row are stored: whole, the first `tail` lanes of one,
/// or whole and past the caches.
enum class Stores { kWhole, kTail, kStreaming };

/// Channels that one pass over the rows serves: NV vectors, or one of `tail`
/// channels.
template <class A, int NV, Stores kStores>
struct Columns {
  int64_t tail = kLanes<A>;

  static_assert(kStores != Stores::kTail || NV == 1);

  template <class S>
  HWY_INLINE Vec<A> get(const S* p, int v) const {
    return kStores == Stores::kTail ? load_some<A>(p, tail)
                                    : load_channels<NV>(p, v);
  }
  /// Vectors v, v + 1, ... as many as share channels.
  template <class S>
  HWY_INLINE void put(const Vec<A>* values, S* p, int v) const {
    constexpr int kShares = kSharing<S, NV>;
    if (kStores == Stores::kTail)
      store_some<A>(*values, p, tail);
    else
      store_channels<kShares>(
          values,
          p + v * kLanes<A>,
          kStores == Stores::kStreaming);
  }
  /// A row of the next strip: so many would drive out each other, and the sums,
  /// from the first-level cache.
  template <OwnCache kCache = OwnCache::kSecond, class S>
  HWY_INLINE void prefetch(const S* p) const {
    if (kStores != Stores::kTail)
      prefetch_lines<kCache>(p, NV * kLanes<A> * int64_t{sizeof(S)});
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

/// The part of SEQCONV_FOR_COLUMNS for NV whole vectors at a time.
#define SEQCONV_FOR_WHOLE_COLUMNS(CALL, NV)                             \
  for (; left >= NV * L; left -= NV * L, advance(rest, NV * L))         \
  good = (tile.streaming ? CALL<S, A, NV, Stores::kStreaming>(rest, {}) \
                         : CALL<S, A, NV, Stores::kWhole>(rest, {})) && \
      good

/// Whether CALL(tile, columns) is true for all of the tile's channels, four
/// vectors at a time where there are as many, or two.
#define SEQCONV_FOR_COLUMNS(CALL)                              \
  constexpr int64_t L = kLanes<A>;                             \
  int64_t left = tile.channels;                                \
  auto rest = tile;                                            \
  bool good = true;                                            \
  SEQCONV_FOR_WHOLE_COLUMNS(CALL, 4);                          \
  SEQCONV_FOR_WHOLE_COLUMNS(CALL, 2);                          \
  for (; left >= L; left -= L, advance(rest, L))               \
    good = CALL<S, A, 1, Stores::kWhole>(rest, {}) && good;    \
  if (left > 0)                                                \
    good = CALL<S, A, 1, Stores::kTail>(rest, {left}) && good; \
  if (tile.streaming)                                          \
    hwy::FlushStream();                                        \
  return good

}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
