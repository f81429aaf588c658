#if defined(SEQCONV_KERNELS_TALK_FORWARD_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_TALK_FORWARD_INL_H
#undef SEQCONV_KERNELS_TALK_FORWARD_INL_H
#else
#define SEQCONV_KERNELS_TALK_FORWARD_INL_H
#endif

#include <cstring>

#include "kernels/talk/talk_columns-inl.h"
#include "kernels/talk/talk_kernels.h"

/// TaLK on a tile: prefix sums that begin anew in every tile, so that rounding
/// depends on the window and not on T. Only the sums that the present windows
/// reach are kept, in a ring whose last row also stands before its first one,
/// so that every row has the one before it at the same distance.
HWY_BEFORE_NAMESPACE();
namespace seqconv::kernels::HWY_NAMESPACE {

template <class S, class A, int NV, bool kStreams>
class ForwardColumns {
 public:
  HWY_INLINE explicit ForwardColumns(const TalkTile<S, A>& tile)
      : columns_{tile.channels},
        inputs_(tile.inputs),
        rows_(tile.rows),
        before_(HWY_MIN(tile.inputs, tile.ahead - 1)),
        x_(tile.x),
        y_(tile.y),
        windows_(tile.windows),
        stride_(tile.stride),
        next_(tile.next),
        ring_(tile.sums),
        ring_end_(tile.sums + (tile.ring - 1) * kPitch),
        last_(tile.sums + (tile.origin & (tile.ring - 1)) * kPitch),
        slots_(static_cast<uint64_t>(tile.ring - 1) * 0x100000001u),
        scale_(hn::Set(d_, tile.scale)) {
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v)
      sum_[v] = hn::Zero(d_);
    keep_sums();
  }

  /// Whether all inputs were finite.
  HWY_INLINE bool run() {
    add_rows(before_);
    // With every window a row is summed up: one after the other would wait for
    // loads in one half of the time and for stores in the other.
    const int64_t both = HWY_MIN(rows_, inputs_ - before_);
    for (int64_t t = 0; t < both; ++t) {
      add_row();
      put_row();
    }
    for (int64_t t = both; t < rows_; ++t)
      put_row();
    add_rows(inputs_ - before_ - both);
    return all_finite<A, NV>(sum_);
  }

 private:
  static constexpr Tag<A> d_{};
  static constexpr int L = kLanes<A>;
  static constexpr int64_t kPitch = kTalkChannels;

  HWY_INLINE void store_sums() const {
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v)
      hn::Store(sum_[v], d_, last_ + v * L);
  }
  /// Stores the sums in the ring's next row.
  HWY_INLINE void keep_sums() {
    store_sums();
    if (HWY_UNLIKELY(last_ == ring_end_)) {
      last_ = ring_ - kPitch;
      store_sums();
    }
  }

  /// Sums are not times the scale: those of inputs with few bits are exact.
  HWY_INLINE void add_row() {
    if (kStreams)
      columns_.prefetch(x_ + next_);
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v)
      sum_[v] = hn::Add(sum_[v], columns_.get(x_, v));
    x_ += stride_;
    last_ += kPitch;
    keep_sums();
  }
  HWY_INLINE void add_rows(int64_t count) {
    for (; count > 0; --count)
      add_row();
  }

  /// What lies between the edges of the next window, times the scale.
  HWY_INLINE void put_row() {
    const TalkWindow<A>& w = *windows_;
    // One load of both: every one holds up those of vectors.
    uint64_t rows;
    std::memcpy(&rows, &w.low, sizeof(rows));
    rows = scalar(rows & slots_);
    const A* const low =
        scalar(ring_ + int64_t{static_cast<uint32_t>(rows)} * kPitch);
    const A* const behind = scalar(ring_ + (rows >> 32) * kPitch);
    const auto left = hn::Set(d_, w.left), right = hn::Set(d_, w.right);
    columns_.put(y_, [&](int v) HWY_ATTR {
      const int64_t at = v * L;
      const auto begin = between(low + at, low + at - kPitch, left);
      const auto end = between(behind + at - kPitch, behind + at, right);
      return hn::Mul(hn::Sub(end, begin), scale_);
    });
    // A pointer that moves on: g++ would count rows and read it every time.
    windows_ = scalar(windows_ + 1);
    y_ += stride_;
  }
  /// sum + part * (edge - sum)
  HWY_INLINE static Vec<A> between(const A* sum, const A* edge, Vec<A> part) {
    const auto s = in_register(hn::Load(d_, sum));
    return hn::MulAdd(part, hn::Sub(hn::Load(d_, edge), s), s);
  }

  const Columns<S, A, NV, kStreams> columns_;
  const int64_t inputs_, rows_;
  const int64_t before_;  // inputs that are summed up before the first window
  const S* x_;            // the next input
  S* y_;                  // the next output
  const TalkWindow<A>* windows_;  // that of the next output
  const int64_t stride_, next_;
  A* const ring_;
  A* const ring_end_;     // its last row
  A* last_;               // the sums stored last
  const uint64_t slots_;  // ring - 1 for each half of TalkWindow's rows
  const Vec<A> scale_;
  Vec<A> sum_[NV];
};

}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
