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
template <class S, class A, int NV, Stores kStores>
class RunningSums {
 public:
  HWY_INLINE
  RunningSums(
      const TalkTile<S, A>& tile,
      const Columns<A, NV, kStores>& columns)
      : columns_(columns),
        x_(tile.x),
        x_stride_(tile.x_stride),
        next_(tile.next),
        first_(tile.sums),
        end_(tile.sums + tile.ring * kTalkChannels),
        last_(tile.sums) {
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) {
      sum_[v] = hn::Zero(Tag<A>());
      hn::Store(sum_[v], Tag<A>(), last_ + v * kLanes<A>);
    }
  }

  HWY_INLINE void add_row() {
    columns_.prefetch(x_ + next_);
    last_ += kTalkChannels;
    if (last_ == end_)
      last_ = first_;
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v) {
      sum_[v] = hn::Add(sum_[v], columns_.get(x_, v));
      hn::Store(sum_[v], Tag<A>(), last_ + v * kLanes<A>);
    }
    x_ += x_stride_;
  }
  HWY_INLINE void add_rows(int64_t count) {
    for (; count > 0; --count)
      add_row();
  }

  HWY_INLINE bool finite() const {
    return all_finite<A, NV>(sum_);
  }

 private:
  const Columns<A, NV, kStores>& columns_;
  const S* x_;  // the next row
  const int64_t x_stride_;
  const int64_t next_;
  A* const first_;  // the ring
  A* const end_;
  A* last_;  // the sum made last
  Vec<A> sum_[NV];
};

/// Output t, at y: what lies between the borders of its window.
template <class S, class A, int NV, Stores kStores>
HWY_INLINE void talk_window_sum(
    const TalkTile<S, A>& tile,
    const Columns<A, NV, kStores>& columns,
    const TalkWindows<A>& w,
    int64_t t,
    S* y) {
  constexpr int64_t L = kLanes<A>;
  const Tag<A> d;
  // prefix + part * (edge - prefix); one border after the other, for pointers
  // are what registers are short of.
  const auto border =
      [&](int32_t at, int32_t edge_at, Vec<A> part, int v) HWY_ATTR {
        const A* const prefix = tile.sums + at + v * L;
        const A* const edge = tile.sums + edge_at + v * L;
        const auto sum = in_register(hn::Load(d, prefix));
        return hn::MulAdd(part, hn::Sub(hn::Load(d, edge), sum), sum);
      };
  columns.prefetch_output(y + tile.next);
  const auto scale = hn::Set(d, tile.scale);
  const auto left = hn::Set(d, w.left()[t]), right = hn::Set(d, w.right()[t]);
  Vec<A> begin[NV];
#pragma GCC unroll 4
  for (int v = 0; v < NV; ++v)
    begin[v] = border(w.low()[t], w.low_edge()[t], left, v);
#pragma GCC unroll 4
  for (int v = 0; v < NV; ++v) {
    const auto end = border(w.high()[t], w.high_edge()[t], right, v);
    columns.put(hn::Mul(hn::Sub(end, begin[v]), scale), y, v);
  }
}

template <class S, class A, int NV, Stores kStores>
HWY_INLINE bool talk_columns(
    const TalkTile<S, A>& all,
    const Columns<A, NV, kStores>& columns) {
  const TalkTile<S, A> tile = all;
  const TalkWindows<A> w = tile.windows;
  RunningSums<S, A, NV, kStores> sums(tile, columns);
  sums.add_rows(HWY_MIN(tile.end, tile.ahead - 1));
  // With every window a row is summed up: one after the other would wait for
  // loads in one half of the time and for stores in the other.
  const int64_t both =
      HWY_MIN(tile.rows, HWY_MAX(tile.end - tile.ahead + 1, int64_t{0}));
  S* y = tile.y;
  for (int64_t t = 0; t < both; ++t, y += tile.y_stride) {
    sums.add_row();
    talk_window_sum(tile, columns, w, t, y);
  }
  for (int64_t t = both; t < tile.rows; ++t, y += tile.y_stride)
    talk_window_sum(tile, columns, w, t, y);
  sums.add_rows(tile.end - (tile.ahead - 1) - both);
  return sums.finite();
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
      const auto l = at(w.low()), h = at(w.high());
      const auto begin =
          hn::MulAdd(load(w.left() + c), hn::Sub(at(w.low_edge()), l), l);
      const auto until =
          hn::MulAdd(load(w.right() + c), hn::Sub(at(w.high_edge()), h), h);
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
