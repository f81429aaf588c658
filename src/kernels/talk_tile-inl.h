#if defined(SEQCONV_KERNELS_TALK_TILE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_TALK_TILE_INL_H
#undef SEQCONV_KERNELS_TALK_TILE_INL_H
#else
#define SEQCONV_KERNELS_TALK_TILE_INL_H
#endif

#include "kernels/talk_windows-inl.h"

/// TaLK on a tile: prefix sums that begin anew in every tile, so that rounding
/// depends on the window and not on T. Only the sums that the present windows
/// reach are kept, in a ring.
HWY_BEFORE_NAMESPACE();
namespace seqconv::kernels::HWY_NAMESPACE {

/// Prefix sums of some columns, made row by row.
template <class S, class A, int NV, bool kTail>
struct RunningSums {
  const TalkTile<S, A>& tile;
  const Columns<A, NV, kTail>& columns;
  Vec<A> sum[NV];
  int64_t made = 0;  ///< inputs that are summed up
  int64_t slot = 0;  ///< of the last sum

  HWY_INLINE RunningSums(
      const TalkTile<S, A>& t,
      const Columns<A, NV, kTail>& c)
      : tile(t), columns(c) {
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) {
      sum[v] = hn::Zero(Tag<A>());
      hn::Store(sum[v], Tag<A>(), tile.sums + v * kLanes<A>);
    }
  }

  HWY_INLINE void extend(int64_t until) {
    for (; made < until; ++made) {
      const S* const x = tile.x + made * tile.x_stride;
      columns.prefetch(x + tile.next);
      slot = slot + 1 == tile.ring ? 0 : slot + 1;
      A* const to = tile.sums + slot * kTalkChannels;
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v) {
        sum[v] = hn::Add(sum[v], columns.get(x, v));
        hn::Store(sum[v], Tag<A>(), to + v * kLanes<A>);
      }
    }
  }
};

template <class S, class A, int NV, bool kTail>
HWY_INLINE bool talk_columns(
    const TalkTile<S, A>& tile,
    const Columns<A, NV, kTail>& columns) {
  constexpr int64_t L = kLanes<A>;
  const Tag<A> d;
  RunningSums<S, A, NV, kTail> sums(tile, columns);
  const auto scale = hn::Set(d, tile.scale);
  const A* const from = tile.sums;
  for (int64_t first = 0; first < tile.rows; first += kTalkChunk) {
    const int64_t end = HWY_MIN(tile.rows, first + kTalkChunk);
    sums.extend(HWY_MIN(tile.end, end - 1 + tile.ahead));
    for (int64_t t = first; t < end; ++t) {
      const TalkWindows<A>& w = tile.windows;
      const A* const low = from + w.low[t];
      const A* const low_edge = from + w.low_edge[t];
      const A* const high = from + w.high[t];
      const A* const high_edge = from + w.high_edge[t];
      const auto left = hn::Set(d, w.left[t]), right = hn::Set(d, w.right[t]);
      S* const y = tile.y + t * tile.y_stride;
      columns.prefetch(y + tile.next);
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v) {
        const auto l = in_register(hn::Load(d, low + v * L));
        const auto h = in_register(hn::Load(d, high + v * L));
        const auto begin =
            hn::MulAdd(left, hn::Sub(hn::Load(d, low_edge + v * L), l), l);
        const auto until =
            hn::MulAdd(right, hn::Sub(hn::Load(d, high_edge + v * L), h), h);
        columns.put(hn::Mul(hn::Sub(until, begin), scale), y, v);
      }
    }
  }
  sums.extend(tile.end);
  return all_finite<A, NV>(sums.sum);
}

/// kLanes places as places of single channels.
template <class A>
HWY_INLINE auto lane_places(const int32_t* places, int64_t lane) {
  const hn::RebindToSigned<Tag<A>> d;
  const auto column = hn::Iota(d, static_cast<hn::TFromD<decltype(d)>>(lane));
  if constexpr (sizeof(A) == 4)
    return hn::Add(hn::LoadU(d, places + lane), column);
  else
    return hn::Add(
        hn::PromoteTo(d, hn::LoadU(IntTag<A>(), places + lane)),
        column);
}

/// The same with a window of its own for every channel.
template <class S, class A>
HWY_INLINE bool talk_lanes(const TalkTile<S, A>& tile) {
  constexpr int64_t L = kLanes<A>;
  const Tag<A> d;
  const int64_t count = tile.channels;
  bool finite = true;
  for (int64_t c = 0; c < count; c += L) {
    Vec<A> sum[1] = {hn::Zero(d)};
    hn::StoreU(sum[0], d, tile.sums + c);
    for (int64_t r = 0; r < tile.end; ++r) {
      const auto x = load_some<A>(tile.x + r * tile.x_stride + c, count - c);
      sum[0] = hn::Add(sum[0], x);
      hn::StoreU(sum[0], d, tile.sums + (r + 1) * kTalkLanes + c);
    }
    finite = all_finite<A, 1>(sum) && finite;
  }
  const auto scale = hn::Set(d, tile.scale);
  for (int64_t t = 0; t < tile.rows; ++t) {
    const TalkWindows<A> w = tile.windows + t * kTalkLanes;
    for (int64_t c = 0; c < count; c += L) {
      const auto at = [&](const int32_t* places) HWY_ATTR {
        return hn::GatherIndex(d, tile.sums, lane_places<A>(places, c));
      };
      const auto l = at(w.low), h = at(w.high);
      const auto begin =
          hn::MulAdd(load(w.left + c), hn::Sub(at(w.low_edge), l), l);
      const auto until =
          hn::MulAdd(load(w.right + c), hn::Sub(at(w.high_edge), h), h);
      store_some<A>(
          hn::Mul(hn::Sub(until, begin), scale),
          tile.y + t * tile.y_stride + c,
          count - c);
    }
  }
  return finite;
}

template <class S, class A>
HWY_INLINE void advance(TalkTile<S, A>& tile, int64_t channels) {
  tile.x += channels;
  tile.y += channels;
  tile.channels -= channels;
}

template <class S, class A>
bool talk_forward_tile(const TalkTile<S, A>& tile) {
  if (tile.lane_windows)
    return talk_lanes(tile);
  SEQCONV_FOR_COLUMNS(talk_columns);
}

}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
