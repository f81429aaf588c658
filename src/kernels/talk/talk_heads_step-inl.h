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

template <class S, class O, class A = AccumulatorOf<S>>
class StepHeads {
 public:
  explicit StepHeads(const TalkStep<S, O>& args)
      : args_(args),
        groups_(talk_head_groups(args.shape)),
        scale_(A(1) / static_cast<A>(args.shape.window())),
        lanes_{lanes_of(args.shape, 0), lanes_of(args.shape, groups_ - 1)} {}

  void run(int64_t item) {
    const int64_t row = item / groups_, group = item % groups_;
    const TalkHeadGroup heads = talk_head_group(args_.shape, group);
    for (int64_t t = 0; t < args_.shape.steps; ++t) {
      const int64_t position = row * args_.shape.steps + t;
      find_pasts(
          args_.offset_left + position * args_.shape.heads + heads.first,
          heads.count,
          HWY_MIN(args_.state.position + t, args_.state.slots));
      put(row, t, heads, lanes_[group + 1 == groups_ ? 1 : 0]);
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
    const auto max = hn::Set(d_, static_cast<A>(args_.shape.max_left));
    const auto scale = hn::Set(d_, scale_);
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

  HWY_INLINE void put(
      int64_t row, int64_t t, const TalkHeadGroup& heads, const HeadLanes<A>& lanes) {
    const int64_t C = args_.shape.channels, slots = args_.state.slots;
    const int64_t now = args_.state.position + t, at = (row * args_.shape.steps + t) * C;
    S* const ring = args_.state.data + row * slots * C;
    const S* const x = args_.x + at;
    const auto scale = hn::Set(d_, scale_);
    for (int64_t c = 0; c < heads.channels; c += L) {
      const int64_t channel = heads.channel + c, count = heads.channels - c;
      const auto past = lanes.get(past_.row, c / L);
      const auto oldest = lanes.get(past_.share, c / L);
      auto sum = hn::Zero(d_);
      const auto add = [&](const S* from, int64_t age) HWY_ATTR {
        const auto own = whole(age);
        const auto last = hn::RebindMask(d_, hn::Eq(past, own));
        const auto more = hn::MulAdd(
            hn::IfThenElse(last, oldest, scale), load_some<A>(from + channel, count), sum);
        const auto before = hn::RebindMask(d_, hn::Gt(own, past));
        sum = hn::IfThenElse(before, sum, more);
      };
      const auto first = static_cast<int64_t>(hn::GetLane(hn::MaxOfLanes(di_, past)));
      int64_t slot = first > 0 ? (now - first) % slots : 0;
      for (int64_t age = first; age > 0; --age) {
        add(ring + slot * C, age);
        slot = slot + 1 == slots ? 0 : slot + 1;
      }
      add(x, 0);
      store_some<A>(sum, args_.y + at + channel, count);
    }
    if (slots > 0)
      std::copy_n(x + heads.channel, heads.channels, ring + now % slots * C + heads.channel);
  }

  const TalkStep<S, O>& args_;
  const int64_t groups_;
  const A scale_;
  const HeadLanes<A> lanes_[2];  // of all groups but the last one, of the last one
  HeadEdges<A> past_;
};

template <class S, class O>
void step_heads(const TalkStep<S, O>& args, int64_t begin, int64_t end) {
  StepHeads<S, O> stepper(args);
  for (int64_t item = begin; item < end; ++item)
    stepper.run(item);
}

#endif
}  // namespace seqconv::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
