#if defined(SEQCONV_KERNELS_TALK_FORWARD_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_TALK_FORWARD_INL_H
#undef SEQCONV_KERNELS_TALK_FORWARD_INL_H
#else
#define SEQCONV_KERNELS_TALK_FORWARD_INL_H
#endif

#include "kernels/talk/talk_columns-inl.h"
#include "kernels/talk/talk_kernels.h"

/// TaLK on a tile: prefix sums that begin anew in every tile, so that rounding
/// depends on the window and not on T. Only the sums that the present windows
/// reach are kept, in a ring whose last row also stands before its first one,
/// so that every row has the one before it at the same distance.
HWY_BEFORE_NAMESPACE();
namespace seqconv::internal::kernels::HWY_NAMESPACE {

template <class S, class A, int NV, bool kStreams>
class ForwardColumns {
 public:
  HWY_INLINE explicit ForwardColumns(const TalkTile<S, A>& tile)
      : tile_(tile),
        columns_{tile.channels},
        x_(tile.x),
        y_(tile.y),
        windows_(tile.windows),
        last_(sums_at(tile.origin)) {
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v)
      sum_[v] = hn::Zero(d_);
    keep_sums();
  }

  /// Whether all inputs were finite.
  HWY_INLINE bool run() {
    const int64_t before = HWY_MIN(tile_.inputs, tile_.ahead - 1);
    const int64_t both = HWY_MIN(tile_.rows, tile_.inputs - before);
    add_rows(before);
    // With every window a row is summed up: one after the other would wait for
    // loads in one half of the time and for stores in the other.
    for (int64_t t = 0; t < both; ++t) {
      add_row();
      put_row();
    }
    for (int64_t t = both; t < tile_.rows; ++t)
      put_row();
    add_rows(tile_.inputs - before - both);
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
    if (HWY_UNLIKELY(last_ == tile_.sums + (tile_.ring - 1) * kPitch)) {
      last_ = tile_.sums - kPitch;
      store_sums();
    }
  }

  /// Sums are not times the scale: those of inputs with few bits are exact.
  HWY_INLINE void add_row() {
    if (kStreams)
      columns_.prefetch(x_ + tile_.next);
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v)
      sum_[v] = hn::Add(sum_[v], columns_.get(x_, v));
    x_ += tile_.stride;
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
    const A* const first = sums_at(w.first + 1);
    const A* const last = sums_at(w.last + 1);
    const auto scale = hn::Set(d_, tile_.scale);
    const auto left = hn::Set(d_, w.left), right = hn::Set(d_, w.right);
    columns_.put(y_, [&](int v) HWY_ATTR {
      const int64_t at = v * L;
      const auto begin = between(first + at, first + at - kPitch, left);
      const auto end = between(last + at - kPitch, last + at, right);
      return hn::Mul(hn::Sub(end, begin), scale);
    });
    // A pointer that moves on: g++ would count rows and read it every time.
    windows_ = scalar(windows_ + 1);
    y_ += tile_.stride;
  }
  HWY_INLINE A* sums_at(int64_t row) const {
    return scalar(tile_.sums + (row & (tile_.ring - 1)) * kPitch);
  }
  /// sum + part * (edge - sum)
  HWY_INLINE static Vec<A> between(const A* sum, const A* edge, Vec<A> part) {
    const auto s = in_register(hn::Load(d_, sum));
    return hn::MulAdd(part, hn::Sub(hn::Load(d_, edge), s), s);
  }

  const TalkTile<S, A> tile_;  // a copy: nothing that is written changes it
  const Columns<S, A, NV, kStreams> columns_;
  const S* x_;                    // the next input
  S* y_;                          // the next output
  const TalkWindow<A>* windows_;  // that of the next output
  A* last_;                       // the sums stored last
  Vec<A> sum_[NV];
};

}  // namespace seqconv::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
