#if defined(SEQCONV_KERNELS_TALK_TILE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_TALK_TILE_INL_H
#undef SEQCONV_KERNELS_TALK_TILE_INL_H
#else
#define SEQCONV_KERNELS_TALK_TILE_INL_H
#endif

#include <cstring>

#include "kernels/talk/talk_columns-inl.h"
#include "kernels/talk/talk_windows-inl.h"

/// TaLK on a tile: prefix sums that begin anew in every tile, so that rounding
/// depends on the window and not on T. Only the sums that the present windows
/// reach are kept, in a ring whose last row also stands before its first one,
/// so that every row has the one before it at the same distance.
HWY_BEFORE_NAMESPACE();
namespace seqconv::kernels::HWY_NAMESPACE {

/// Prefix sums of some columns, made row by row. Rows of them are kPitch apart.
/// Not times the scale: those of inputs with few bits are exact.
template <
    class S,
    class A,
    int NV,
    Stores kStores,
    int64_t kPitch,
    bool kFetches>
class RunningSums {
 public:
  HWY_INLINE
  RunningSums(
      const TalkTile<S, A>& tile,
      const Columns<A, NV, kStores>& columns)
      : columns_(columns),
        x_(tile.x),
        stride_(tile.stride),
        next_(tile.next),
        first_(tile.sums),
        end_(tile.sums + (tile.ring - 1) * kPitch),
        last_(tile.sums) {
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v) {
      sum_[v] = hn::Zero(Tag<A>());
      hn::Store(sum_[v], Tag<A>(), last_ + v * kLanes<A>);
    }
  }

  HWY_INLINE void add_row() {
    if (kFetches)
      columns_.prefetch(x_ + next_);
    last_ += kPitch;
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v) {
      sum_[v] = hn::Add(sum_[v], columns_.get(x_, v));
      hn::Store(sum_[v], Tag<A>(), last_ + v * kLanes<A>);
    }
    x_ += stride_;
    if (HWY_UNLIKELY(last_ == end_)) {
      last_ = first_ - kPitch;
#pragma GCC unroll 8
      for (int v = 0; v < NV; ++v)
        hn::Store(sum_[v], Tag<A>(), last_ + v * kLanes<A>);
    }
  }
  HWY_INLINE void add_rows(int64_t count) {
    for (; count > 0; --count)
      add_row();
  }

  HWY_INLINE bool finite() const {
    return all_finite<A, NV>(sum_);
  }

 private:
  const Columns<A, NV, kStores> columns_;
  const S* x_;  // the next row
  const int64_t stride_;
  const int64_t next_;
  A* const first_;  // the ring
  A* const end_;    // its last row
  A* last_;         // the sum made last
  Vec<A> sum_[NV];
};

/// Row after row of outputs: what lies between the edges of their windows,
/// times the scale.
/// The first of kWindows windows is that of the first NV vectors, the next that
/// of the next ones.
template <
    class S,
    class A,
    int NV,
    Stores kStores,
    int kWindows,
    int64_t kPitch,
    bool kFetches>
class WindowSums {
 public:
  HWY_INLINE
  WindowSums(const TalkTile<S, A>& tile, const Columns<A, NV, kStores>& columns)
      : columns_(columns),
        sums_(tile.sums),
        windows_(tile.windows),
        second_(tile.second),
        y_(tile.y),
        stride_(tile.stride),
        next_(tile.next),
        scale_(hn::Set(d_, tile.scale)) {}

  HWY_INLINE void put_row() {
#pragma GCC unroll 2
    for (int i = 0; i < kWindows; ++i)
      put(i, y_ + i * NV * L);
    // A pointer that moves on: g++ would count rows and read it every time.
    windows_ = scalar(windows_ + 1);
    if (kFetches && kStores == Stores::kWhole)
      prefetch_lines<OwnCache::kSecond>(
          y_ + next_,
          kWindows * NV * L * int64_t{sizeof(S)});
    y_ += stride_;
  }

 private:
  static constexpr Tag<A> d_{};
  static constexpr int L = kLanes<A>;

  HWY_INLINE void put(int i, S* y) const {
    const TalkWindow<A>& w = windows_[i * second_];
    // One load of both: every one holds up those of vectors.
    uint64_t places;
    std::memcpy(&places, &w.low, sizeof(places));
    places = scalar(places);
    const A* const from = sums_ + i * NV * L;
    const A* const low = scalar(from + static_cast<uint32_t>(places));
    const A* const behind = scalar(from + (places >> 32));
    const auto left = hn::Set(d_, w.left), right = hn::Set(d_, w.right);
    constexpr int kShares = kSharing<S, NV>;
#pragma GCC unroll 4
    for (int v = 0; v < NV; v += kShares) {
      Vec<A> sums[kShares];
#pragma GCC unroll 2
      for (int n = 0; n < kShares; ++n) {
        const int64_t at = (v + n) * L;
        const auto begin = between(low + at, low + at - kPitch, left);
        const auto end = between(behind + at - kPitch, behind + at, right);
        sums[n] = hn::Mul(hn::Sub(end, begin), scale_);
      }
      columns_.put(sums, y, v);
    }
  }
  /// sum + part * (edge - sum)
  HWY_INLINE static Vec<A> between(const A* sum, const A* edge, Vec<A> part) {
    const auto s = in_register(hn::Load(d_, sum));
    return hn::MulAdd(part, hn::Sub(hn::Load(d_, edge), s), s);
  }

  const Columns<A, NV, kStores> columns_;
  const A* const sums_;
  const TalkWindow<A>* windows_;
  const int64_t second_;
  S* y_;
  const int64_t stride_;
  const int64_t next_;
  const Vec<A> scale_;
};

template <class S, class A, int NV, Stores kStores, int kWindows, bool kFetches>
HWY_INLINE bool talk_rows(
    const TalkTile<S, A>& tile,
    const Columns<A, NV, kStores>& columns) {
  constexpr int64_t kPitch = kWindows * kTalkChannels;
  RunningSums<S, A, NV * kWindows, kStores, kPitch, kFetches> sums(
      tile,
      {columns.tail});
  WindowSums<S, A, NV, kStores, kWindows, kPitch, kFetches> windows(
      tile,
      columns);
  sums.add_rows(HWY_MIN(tile.end, tile.ahead - 1));
  // With every window a row is summed up: one after the other would wait for
  // loads in one half of the time and for stores in the other.
  const int64_t both =
      HWY_MIN(tile.rows, HWY_MAX(tile.end - tile.ahead + 1, int64_t{0}));
  const int64_t alone = tile.rows - both;
  for (int64_t t = 0; t < both; ++t) {
    sums.add_row();
    windows.put_row();
  }
  for (int64_t t = 0; t < alone; ++t)
    windows.put_row();
  sums.add_rows(tile.end - (tile.ahead - 1) - both);
  return sums.finite();
}

/// Loops of their own: in those without prefetching registers are just enough.
template <class S, class A, int NV, Stores kStores, int kWindows = 1>
HWY_INLINE bool talk_columns(
    const TalkTile<S, A>& tile,
    const Columns<A, NV, kStores>& columns) {
  constexpr bool kStreams = kStores == Stores::kStreaming;
  if constexpr (kStores == Stores::kWhole && NV > 1)
    if (tile.from_memory)
      return talk_rows<S, A, NV, kStores, kWindows, true>(tile, columns);
  return talk_rows<S, A, NV, kStores, kWindows, kStreams>(tile, columns);
}

/// What a window holds of a channel of kTalkLanes.
template <class A>
HWY_INLINE A between_edges(const TalkWindow<A>& w, const A* sums) {
  const A* const low = scalar(sums + w.low);
  const A* const behind = scalar(sums + w.behind);
  const A begin = low[0], end = behind[-kTalkLanes];
  return end + w.right * (behind[0] - end) -
      (begin + w.left * (low[-kTalkLanes] - begin));
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
      const auto x = load_some<A>(tile.x + r * tile.stride + c, count - c);
      sum[0] = hn::Add(sum[0], x);
      hn::StoreU(sum[0], d, tile.sums + (r + 1) * kTalkLanes + c);
    }
    finite = all_finite<A, 1>(sum) && finite;
  }
  const auto scale = hn::Set(d, tile.scale);
  for (int64_t t = 0; t < tile.rows; ++t) {
    // Lane by lane: instructions that gather take three times as long.
    HWY_ALIGN A sums[kTalkLanes];
    for (int64_t c = 0; c < count; ++c)
      sums[c] = between_edges(tile.windows[t * kTalkLanes + c], tile.sums + c);
    for (int64_t c = 0; c < count; c += L)
      store_some<A>(
          hn::Mul(hn::Load(d, sums + c), scale),
          tile.y + t * tile.stride + c,
          count - c);
  }
  return finite;
}

template <class S, class A>
HWY_INLINE void advance(TalkTile<S, A>& tile, int64_t channels) {
  tile.x += channels;
  tile.y += channels;
  tile.channels -= channels;
}

/// Whether four vectors hold just the channels of one window.
template <class A>
inline constexpr bool kTalkPairs = 4 * kLanes<A> == kTalkChannels;

template <class S, class A>
bool talk_forward_tile(const TalkTile<S, A>& tile) {
  if (tile.lanes == kTalkLanes)
    return talk_lanes(tile);
  if constexpr (kTalkPairs<A>)
    if (tile.lanes == 2)
      return talk_columns<S, A, 4, Stores::kWhole, 2>(tile, {});
  SEQCONV_FOR_COLUMNS(talk_columns);
}

}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
