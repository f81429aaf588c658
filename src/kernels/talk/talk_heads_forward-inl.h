#if defined(SEQCONV_KERNELS_TALK_HEADS_FORWARD_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_TALK_HEADS_FORWARD_INL_H
#undef SEQCONV_KERNELS_TALK_HEADS_FORWARD_INL_H
#else
#define SEQCONV_KERNELS_TALK_HEADS_FORWARD_INL_H
#endif

#include <hwy/cache_control.h>

#include "kernels/talk/talk_heads-inl.h"

/// Sums as those of talk_forward-inl.h, to the last bit. A row of the ring
/// has the sums before and behind its input, for an edge takes a share of the
/// difference of both.
HWY_BEFORE_NAMESPACE();
namespace seqconv::internal::kernels::HWY_NAMESPACE {
#if HWY_TARGET != HWY_SCALAR  // whose vectors hold no two heads

/// kParts: heads of a vector whose channels are loaded part by part; 0: lane by
/// lane, of heads of any width. kWhole: kTalkTogether channels.
template <class S, class O, int kParts, bool kWhole, class A = AccumulatorOf<S>>
class ForwardHeads {
 public:
  explicit ForwardHeads(const TalkHeadsTile<S, O>& tile)
      : tile_(tile.rows),
        heads_(tile.heads),
        channels_(tile.rows.channels),
        lanes_(tile.heads.count, tile.heads.head_channels),
        windows_(heads_) {}

  /// Returns false where an input was not finite.
  bool run() {
    const auto place = [ring = tile_.ring](IntVec<A> row) HWY_ATTR {
      const auto in_ring =
          hn::And(row, hn::Set(IntTag<A>(), static_cast<hn::TFromD<IntTag<A>>>(ring - 1)));
      return hn::ShiftLeft<kShift>(in_ring);
    };
    for (int64_t t = 0; t < tile_.rows; ++t) {
      windows_.make(t, place);
      add_rows(HWY_MIN(tile_.inputs, t + tile_.ahead));
      heads_.offsets.right == nullptr ? put_row<false>(t) : put_row<true>(t);
    }
    add_rows(tile_.inputs);
    if (tile_.streaming)
      hwy::FlushStream();
    return finite();
  }

 private:
  static constexpr Tag<A> d_{};
  static constexpr int64_t L = kLanes<A>;
  static constexpr int64_t kPitch = kTalkTogether;
  /// From a row of the ring to the next, in elements, or pairs of them.
  static constexpr int kShift =
      std::countr_zero(static_cast<uint64_t>(kPitch)) + (kParts > 0 ? 1 : 0);

  HWY_INLINE A* row_of(int64_t row) const {
    return tile_.sums + (row & (tile_.ring - 1)) * 2 * kPitch;
  }

  /// Sums inputs up to `end`. They are not times the scale: those of inputs
  /// with few bits are exact.
  HWY_INLINE void add_rows(int64_t end) {
    const int64_t channels = channels_.count();
    for (; added_ < end; ++added_) {
      const S* const x = tile_.x + added_ * tile_.stride;
      A* const row = row_of(tile_.origin + added_);
      if (heads_.prefetches)
        prefetch_lines<OwnCache::kSecond>(
            x + kTalkAhead * tile_.stride, channels * static_cast<int64_t>(sizeof(S)));
      for (int64_t c = 0; c < channels; c += L) {
        const auto before = hn::Load(d_, sums_ + c);
        const auto behind = hn::Add(before, channels_.get(x, c));
        hn::Store(behind, d_, sums_ + c);
        put_sums(before, behind, row, c);
      }
    }
  }
  HWY_INLINE static void put_sums(Vec<A> before, Vec<A> behind, A* row, int64_t c) {
    if constexpr (kParts == 0) {
      hn::StoreInterleaved2(before, behind, d_, row + 2 * c);
    } else {
      hn::Store(before, d_, row + c);
      hn::Store(behind, d_, row + kPitch + c);
    }
  }
  HWY_INLINE static void get_sums(const A* row, int64_t c, Vec<A>& before, Vec<A>& behind) {
    if constexpr (kParts == 0) {
      hn::LoadInterleaved2(d_, row + 2 * c, before, behind);
    } else {
      before = hn::Load(d_, row + c);
      behind = hn::Load(d_, row + kPitch + c);
    }
  }

  /// Writes the inputs between the edges of window t, summed and times the scale.
  template <bool kRight>
  HWY_INLINE void put_row(int64_t t) {
    const HeadEdges<A>&left = windows_.left, &right = windows_.right;
    const auto scale = hn::Set(d_, tile_.scale);
    const A* const own = row_of(heads_.offsets.first + t);
    const A* const sums = tile_.sums;
    const int64_t channels = channels_.count();
    const bool streaming = tile_.streaming;
    S* const y = tile_.y + t * tile_.stride;
    if (heads_.prefetches && !streaming)
      prefetch_lines<OwnCache::kSecond>(
          y + kTalkAhead * tile_.stride, channels * static_cast<int64_t>(sizeof(S)));
    for (int64_t c = 0; c < channels; c += L) {
      Vec<A> before, behind;
      sums_at(left, sums, c, before, behind);
      const auto begin = between(behind, before, lanes_.get(left.share, c / L));
      if (kRight)
        sums_at(right, sums, c, before, behind);
      else
        get_sums(own, c, before, behind);
      const auto end =
          between(before, behind, kRight ? lanes_.get(right.share, c / L) : hn::Set(d_, A(1)));
      const auto out = hn::Mul(hn::Sub(end, begin), scale);
      channels_.put(out, y, c, streaming);
    }
  }
  /// Those before and behind the rows that the edges of channels from c on are
  /// at.
  HWY_INLINE void sums_at(
      const HeadEdges<A>& edges, const A* sums, int64_t c, Vec<A>& before, Vec<A>& behind) const {
    if constexpr (kParts == 0) {
      const IntTag<A> di;
      const auto lane = hn::Iota(di, static_cast<hn::TFromD<IntTag<A>>>(c));
      gather_pairs(sums, hn::Add(lanes_.get(edges.row, c / L), lane), before, behind);
    } else {
      const auto* const at = edges.row + c / L * kParts;
      before = load_parts<kParts, A>(sums + c, at);
      behind = load_parts<kParts, A>(sums + kPitch + c, at);
    }
  }
  /// sum + part * (edge - sum)
  HWY_INLINE static Vec<A> between(Vec<A> sum, Vec<A> edge, Vec<A> part) {
    return hn::MulAdd(part, hn::Sub(edge, sum), sum);
  }

  bool finite() const {
    auto off = hn::Zero(d_);
    for (int64_t c = 0; c < tile_.channels; c += L) {
      const auto sum = hn::Load(d_, sums_ + c);
      off = hn::Add(off, hn::Sub(sum, sum));
    }
    return hn::AllTrue(d_, hn::Eq(off, hn::Zero(d_)));
  }

  const TalkTile<S, A> tile_;
  const TalkHeads<O> heads_;
  const TogetherChannels<S, kWhole> channels_;
  const HeadLanes<A> lanes_;
  HeadWindows<O, A> windows_;
  int64_t added_ = 0;  // inputs
  HWY_ALIGN A sums_[kTalkTogether] = {};
};

template <class S, class O>
bool forward_heads(const TalkHeadsTile<S, O>& tile) {
  using A = AccumulatorOf<S>;
  if (tile.rows.channels < kTalkTogether)
    return ForwardHeads<S, O, 0, /*kWhole=*/false>(tile).run();
  if constexpr (kHasParts<2, A>)
    if (2 * tile.heads.head_channels == kLanes<A>)
      return ForwardHeads<S, O, 2, /*kWhole=*/true>(tile).run();
  if constexpr (kHasParts<4, A>)
    if (4 * tile.heads.head_channels == kLanes<A>)
      return ForwardHeads<S, O, 4, /*kWhole=*/true>(tile).run();
  return ForwardHeads<S, O, 0, /*kWhole=*/true>(tile).run();
}

#endif
}  // namespace seqconv::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
