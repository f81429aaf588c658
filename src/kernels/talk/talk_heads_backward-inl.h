#if defined(SEQCONV_KERNELS_TALK_HEADS_BACKWARD_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_TALK_HEADS_BACKWARD_INL_H
#undef SEQCONV_KERNELS_TALK_HEADS_BACKWARD_INL_H
#else
#define SEQCONV_KERNELS_TALK_HEADS_BACKWARD_INL_H
#endif

#include <hwy/cache_control.h>

#include "kernels/talk/talk_heads_changes-inl.h"

/// The transpose of the prefix sums, as in talk_backward-inl.h, but for windows
/// that differ from channel to channel: window by window, both edges change
/// rows of a ring, and each row is added to the sum when no window can change
/// it any more.
HWY_BEFORE_NAMESPACE();
namespace seqconv::internal::kernels::HWY_NAMESPACE {
#if HWY_TARGET != HWY_SCALAR

/// kR: channels of a head, where there are kTalkTogether channels, or 0.
template <class S, class O, int kR, class A = AccumulatorOf<S>>
class BackwardHeads {
 public:
  explicit BackwardHeads(const TalkHeadsGradTile<S, O>& tile)
      : tile_(tile),
        channels_(tile.channels),
        lanes_(tile.heads.count, tile.heads.head_channels),
        windows_(tile_.heads),
        changes_(tile.changes, tile.ring, tile.heads),
        staged_(HWY_MAX(0, tile.first - tile.heads.reach_left)),
        next_(tile.first - 1) {}

  /// Returns false where a gradient or the share of an edge was not finite.
  bool run() {
    const TalkOffsets<O>& offsets = tile_.heads.offsets;
    const int64_t from = offsets.first, to = from + offsets.count, end = tile_.first + tile_.span;
    changes_.clear();
    put_rows(HWY_MIN(end, from - tile_.heads.reach_left));
    for (int64_t t = from; t < to; ++t) {
      const bool own = t >= tile_.first && t < end;
      windows_.make(t - from, [](IntVec<A> row) HWY_ATTR { return row; });
      load_gradients(tile_.g + t * tile_.stride);
      if (tile_.grad_x != nullptr)
        change_rows(t);
      if (own && has_products())
        put_products(t);
      put_rows(HWY_MIN(end, t + 1 - tile_.heads.reach_left));
    }
    put_rows(end);
    if (tile_.streaming)
      hwy::FlushStream();
    return finite();
  }

 private:
  static constexpr Tag<A> d_{};
  static constexpr IntTag<A> di_{};
  using Int = hn::TFromD<IntTag<A>>;
  static constexpr int64_t L = kLanes<A>;
  static constexpr int64_t kPitch = kTalkTogether;
  static constexpr int kShift = std::countr_zero(static_cast<uint64_t>(kPitch));
  static constexpr int kParts = kR == 0 ? 1 : static_cast<int>(L / kR);
  static constexpr bool kByParts = kHasParts<kParts, A>;

  bool has_products() const { return tile_.grad_left != nullptr || tile_.grad_right != nullptr; }

  HWY_INLINE void prefetch(const S* row) const {
    if (tile_.heads.prefetches)
      prefetch_lines<OwnCache::kSecond>(
          row + kTalkAhead * tile_.stride, tile_.channels * static_cast<int64_t>(sizeof(S)));
  }

  /// Copies rows of x up to `end` into their ring.
  HWY_INLINE void stage_rows(int64_t end) {
    for (; staged_ < end; ++staged_) {
      const S* const x = tile_.x + staged_ * tile_.stride;
      A* const to = tile_.inputs + (staged_ & (tile_.ring - 1)) * kPitch;
      prefetch(x);
      for (int64_t c = 0; c < channels_.count(); c += L)
        hn::Store(channels_.get(x, c), d_, to + c);
    }
  }

  HWY_INLINE void load_gradients(const S* g) {
    prefetch(g);
    for (int64_t c = 0; c < channels_.count(); c += L)
      hn::Store(channels_.get(g, c), d_, g_ + c);
  }

  HWY_INLINE void put_products(int64_t t) {
    const int64_t at = t * tile_.heads.offsets.stride;
    stage_rows(HWY_MIN(tile_.heads.offsets.valid, t + tile_.heads.reach_right));
    if (tile_.grad_left != nullptr)
      put_products(windows_.left, tile_.scale_left, tile_.grad_left + at);
    if (tile_.grad_right != nullptr)
      put_products(windows_.right, tile_.scale_right, tile_.grad_right + at);
  }

  /// Adds g where a window begins, takes it off where it ends.
  HWY_INLINE void change_rows(int64_t t) {
    const HeadEdges<A>&left = windows_.left, &right = windows_.right;
    for (int64_t c = 0; c < channels_.count(); c += L) {
      const auto g = hn::Load(d_, g_ + c);
      changes_.put(g, hn::Mul(lanes_.get(left.share, c / L), g), c);
    }
    changes_.add(left, tile_.first, tile_.first + tile_.span);
    const bool same = tile_.heads.offsets.right == nullptr;  // all end at t
    for (int64_t c = 0; c < channels_.count(); c += L) {
      const auto g = hn::Load(d_, g_ + c);
      const auto rest =
          same ? hn::Zero(d_) : hn::Sub(lanes_.get(right.share, c / L), hn::Set(d_, A(1)));
      changes_.put(hn::Neg(g), hn::Mul(rest, g), c);
    }
    if (same)
      changes_.add_to(HWY_MIN(HWY_MAX(t, tile_.first - 1), tile_.first + tile_.span));
    else
      changes_.add(right, tile_.first, tile_.first + tile_.span);
  }

  /// <g, x at the edge> of each head where the edge is fractional, else 0.
  HWY_INLINE void put_products(const HeadEdges<A>& edges, A scale, O* out) {
    const int64_t heads = kR > 0 ? kPitch / HWY_MAX(1, kR) : tile_.heads.count;
    if (tile_.heads.prefetches)
      prefetch_lines<OwnCache::kSecond>(
          out + kTalkAhead * tile_.heads.offsets.stride, heads * static_cast<int64_t>(sizeof(O)));
    if (kByParts)
      for (int64_t h = 0; h < heads; h += L)
        hn::Store(place(hn::Load(di_, edges.row + h)), di_, at_ + h);
    for (int64_t c = 0; c < channels_.count(); c += L) {
      Vec<A> x;
      if constexpr (kByParts)
        x = load_parts<kParts, A>(tile_.inputs + c, at_ + c / L * kParts);
      else
        x = hn::GatherIndex(
            d_,
            tile_.inputs,
            hn::Add(place(lanes_.get(edges.row, c / L)), hn::Iota(di_, static_cast<Int>(c))));
      hn::Store(hn::Mul(hn::Load(d_, g_ + c), x), d_, products_ + c);
    }
    sum_heads();
    for (int64_t h = 0; h < heads; h += L) {
      const auto whole = hn::Eq(hn::Load(d_, edges.share + h), hn::Set(d_, A(1)));
      const auto product = hn::Mul(hn::Load(d_, products_ + h), hn::Set(d_, scale));
      store_some<A>(hn::IfThenZeroElse(whole, product), out + h, heads - h);
    }
  }
  HWY_INLINE IntVec<A> place(IntVec<A> row) const {
    return hn::ShiftLeft<kShift>(hn::And(row, hn::Set(di_, static_cast<Int>(tile_.ring - 1))));
  }

  /// Products of channels -> those of heads: neighbours are added as long as
  /// there are pairs of them.
  HWY_INLINE void sum_heads() {
    int64_t width = kR > 0 ? kR : tile_.heads.head_channels, count = channels_.count();
    for (; width % 2 == 0; width /= 2, count /= 2)
      for (int64_t i = 0; 2 * i < count; i += L) {
        Vec<A> even, odd;
        hn::LoadInterleaved2(d_, products_ + 2 * i, even, odd);
        hn::Store(hn::Add(even, odd), d_, products_ + i);
      }
    if (kR == 0 && width > 1)
      for (int64_t h = 0; h < tile_.heads.count; ++h) {
        A sum = products_[h * width];
        for (int64_t i = 1; i < width; ++i)
          sum += products_[h * width + i];
        products_[h] = sum;
      }
  }

  /// Writes the gradients of rows up to `end`, which no later window holds.
  HWY_INLINE void put_rows(int64_t end) {
    if (tile_.grad_x == nullptr)
      return;
    const auto scale = hn::Set(d_, tile_.scale);
    const bool streaming = tile_.streaming;
    for (; next_ < end; ++next_) {
      S* const out = tile_.grad_x + next_ * tile_.stride;
      const bool own = next_ >= tile_.first;  // what changed before has come together
      if (!streaming)
        prefetch(out);
      for (int64_t c = 0; c < channels_.count(); c += L) {
        Vec<A> later, here;
        changes_.take(next_, c, later, here);
        const auto sum = hn::Load(d_, sums_ + c);
        hn::Store(hn::Add(sum, later), d_, sums_ + c);
        if (!own)
          continue;
        channels_.put(hn::Mul(hn::Add(sum, here), scale), out, c, streaming);
      }
    }
  }

  bool finite() const {
    auto off = changes_.not_numbers();
    for (int64_t c = 0; c < channels_.count(); c += L) {
      const auto sum = hn::Load(d_, sums_ + c);
      off = hn::Add(off, hn::Sub(sum, sum));
    }
    return hn::AllTrue(d_, hn::Eq(off, hn::Zero(d_)));
  }

  const TalkHeadsGradTile<S, O> tile_;
  const TogetherChannels<S, (kR > 0)> channels_;
  const HeadLanes<A> lanes_;
  HeadWindows<O, A> windows_;
  RowChanges<O, A, kR> changes_;
  int64_t staged_;  // the next row of x
  int64_t next_;    // the next gradient
  HWY_ALIGN A sums_[kTalkTogether] = {};
  HWY_ALIGN A g_[kTalkTogether];
  HWY_ALIGN A products_[2 * kTalkTogether] = {};
  HWY_ALIGN Int at_[HeadLanes<A>::kHeads];
};

template <class S, class O>
bool backward_heads(const TalkHeadsGradTile<S, O>& tile) {
  constexpr int64_t L = kLanes<AccumulatorOf<S>>;
  switch (tile.channels == kTalkTogether ? tile.heads.head_channels : 0) {
    case 1:
      return BackwardHeads<S, O, (L > 1 ? 1 : 0)>(tile).run();
    case 2:
      return BackwardHeads<S, O, (L > 2 ? 2 : 0)>(tile).run();
    case 4:
      return BackwardHeads<S, O, (L > 4 ? 4 : 0)>(tile).run();
    case 8:
      return BackwardHeads<S, O, (L > 8 ? 8 : 0)>(tile).run();
    default:
      return BackwardHeads<S, O, 0>(tile).run();
  }
}

#endif
}  // namespace seqconv::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
