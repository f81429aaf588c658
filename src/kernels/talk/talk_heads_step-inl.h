#if defined(SEQCONV_KERNELS_TALK_HEADS_STEP_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_TALK_HEADS_STEP_INL_H
#undef SEQCONV_KERNELS_TALK_HEADS_STEP_INL_H
#else
#define SEQCONV_KERNELS_TALK_HEADS_STEP_INL_H
#endif

#include "kernels/talk/talk_heads-inl.h"

/// One position of TaLK for heads of few channels: the sums of talk_step_cpu.cpp,
/// oldest input first, of lanes that begin at different inputs.
HWY_BEFORE_NAMESPACE();
namespace seqconv::internal::kernels::HWY_NAMESPACE {
#if HWY_TARGET != HWY_SCALAR

/// Sums of the last inputs of some heads at a position.
template <class S, class O, class A = AccumulatorOf<S>>
class PastSums {
 public:
  PastSums(const TalkShape& shape)
      : groups_(talk_head_groups(shape)),
        max_left_(static_cast<A>(shape.max_left)),
        scale_(A(1) / static_cast<A>(shape.window())),
        lanes_{lanes_of(shape, 0), lanes_of(shape, groups_ - 1)} {}

  /// The sums of a group at a position that `limit` inputs came before, with
  /// their offsets [H]. row(age) is the input so many positions before, all its
  /// channels; y likewise. walk(oldest, add) calls add(row, age) for ages from
  /// `oldest` down to 0.
  template <class Walk>
  HWY_INLINE void put(
      const TalkHeadGroup& heads,
      int64_t group,
      const O* offsets,
      int64_t limit,
      S* y,
      const Walk& walk) {
    find_pasts(offsets + heads.first, heads.count, limit);
    const HeadLanes<A>& lanes = lanes_[group + 1 == groups_ ? 1 : 0];
    const auto scale = hn::Set(d_, scale_);
    for (int64_t c = 0; c < heads.channels; c += L) {
      const int64_t channel = heads.channel + c, count = heads.channels - c;
      const auto past = lanes.get(past_.row, c / L);
      const auto oldest = lanes.get(past_.share, c / L);
      auto sum = hn::Zero(d_);
      walk(
          static_cast<int64_t>(hn::GetLane(hn::MaxOfLanes(di_, past))),
          [&](const S* row, int64_t age) HWY_ATTR {
            const auto own = whole(age);
            const auto last = hn::RebindMask(d_, hn::Eq(past, own));
            const auto more = hn::MulAdd(
                hn::IfThenElse(last, oldest, scale), load_some<A>(row + channel, count), sum);
            const auto before = hn::RebindMask(d_, hn::Gt(own, past));
            sum = hn::IfThenElse(before, sum, more);
          });
      store_some<A>(sum, y + channel, count);
    }
  }

 private:
  static constexpr Tag<A> d_{};
  static constexpr IntTag<A> di_{};
  using Int = hn::TFromD<IntTag<A>>;
  static constexpr int64_t L = kLanes<A>;

  static HeadLanes<A> lanes_of(const TalkShape& shape, int64_t group) {
    return HeadLanes<A>(talk_head_group(shape, group).count, shape.head_channels());
  }
  HWY_INLINE static IntVec<A> whole(int64_t n) { return hn::Set(di_, static_cast<Int>(n)); }

  /// The past inputs of each head, of which there are `limit`, and the weight of
  /// the oldest one. NaN is the weight of the present one.
  HWY_INLINE void find_pasts(const O* offsets, int64_t count, int64_t limit) {
    const auto most = hn::Set(d_, static_cast<A>(limit)), zero = hn::Zero(d_);
    const auto max = hn::Set(d_, max_left_), scale = hn::Set(d_, scale_);
    for (int64_t h = 0; h < count; h += L) {
      const auto distance = hn::Mul(load_some<A>(offsets + h, count - h), max);
      const auto nan = hn::IsNaN(distance);
      const auto reach = hn::IfThenZeroElse(nan, hn::Min(hn::Max(distance, zero), most));
      // As a number of A, the limit may be rounded.
      const auto full = hn::Min(hn::ConvertTo(di_, reach), whole(limit));
      const auto rest =
          hn::IfThenElseZero(hn::Lt(reach, most), hn::Sub(reach, hn::ConvertTo(d_, full)));
      const auto some = hn::Gt(rest, zero);
      const auto more = hn::IfThenElseZero(hn::RebindMask(di_, some), whole(1));
      hn::Store(hn::Add(full, more), di_, past_.row + h);
      const auto oldest = hn::IfThenElse(some, hn::Mul(rest, scale), scale);
      hn::Store(hn::IfThenElse(nan, distance, oldest), d_, past_.share + h);
    }
  }

  const int64_t groups_;
  const A max_left_;
  const A scale_;
  const HeadLanes<A> lanes_[2];  // of all groups but the last one, of the last one
  HeadEdges<A> past_;
};

template <class S, class O>
void step_heads(const TalkStep<S, O>& args, int64_t begin, int64_t end) {
  PastSums<S, O> sums(args.shape);
  const int64_t groups = talk_head_groups(args.shape), steps = args.shape.steps;
  const int64_t C = args.shape.channels, slots = args.state.slots;
  for (int64_t item = begin; item < end; ++item) {
    const int64_t row = item / groups, group = item % groups;
    const TalkHeadGroup heads = talk_head_group(args.shape, group);
    S* const ring = args.state.data + row * slots * C;
    for (int64_t t = 0; t < steps; ++t) {
      const int64_t position = row * steps + t, now = args.state.position + t;
      const S* const x = args.x + position * C;
      const auto walk = [&](int64_t oldest, const auto& add) HWY_ATTR {
        int64_t slot = oldest > 0 ? (now - oldest) % slots : 0;
        for (int64_t age = oldest; age > 0; --age) {
          add(ring + slot * C, age);
          slot = slot + 1 == slots ? 0 : slot + 1;
        }
        add(x, 0);
      };
      sums.put(
          heads,
          group,
          args.offset_left + position * args.shape.heads,
          HWY_MIN(now, slots),
          args.y + position * C,
          walk);
      if (slots > 0)
        std::copy_n(x + heads.channel, heads.channels, ring + now % slots * C + heads.channel);
    }
  }
}

template <class S, class O>
void row_of_heads(const TalkRow<S, O>& args) {
  PastSums<S, O> sums(args.shape);
  const int64_t last = args.count - 1;
  const auto walk = [&](int64_t oldest, const auto& add) HWY_ATTR {
    for (int64_t age = oldest; age >= 0; --age)
      add(args.rows[last - age], age);
  };
  for (int64_t group = 0; group < talk_head_groups(args.shape); ++group)
    sums.put(talk_head_group(args.shape, group), group, args.offset_left, last, args.y, walk);
}

#endif
}  // namespace seqconv::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
