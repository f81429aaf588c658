#if defined(SEQCONV_KERNELS_TALK_DISTANCE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_TALK_DISTANCE_INL_H
#undef SEQCONV_KERNELS_TALK_DISTANCE_INL_H
#else
#define SEQCONV_KERNELS_TALK_DISTANCE_INL_H
#endif

#include <bit>

#include "kernels/common/vectors-inl.h"
#include "kernels/talk/talk_kernels.h"

/// How far the edges of TaLK's windows lie from their positions, in whole
/// tokens and fractions.
HWY_BEFORE_NAMESPACE();
namespace seqconv::kernels::HWY_NAMESPACE {

template <class A>
using IntTag = hn::Rebind<int32_t, Tag<A>>;
template <class A>
using IntVec = hn::Vec<IntTag<A>>;

/// A mask of whole numbers as one of as many of A.
template <class A, class Mask>
HWY_INLINE hn::Mask<Tag<A>> inside(Mask mask) {
  const Tag<A> d;
  const IntTag<A> di;
  if constexpr (sizeof(A) == 4)
    return hn::RebindMask(d, mask);
  else
    return hn::Ne(
        hn::PromoteTo(d, hn::IfThenElseZero(mask, hn::Set(di, 1))),
        hn::Zero(d));
}

/// Numbers that are whole as int32.
HWY_INLINE IntVec<float> to_whole(Vec<float> v) {
  return hn::ConvertTo(IntTag<float>(), v);
}
HWY_INLINE IntVec<double> to_whole(Vec<double> v) {
  return hn::DemoteTo(IntTag<double>(), v);
}

/// 1 where v > 0.
HWY_INLINE IntVec<float> positive(Vec<float> v) {
  const IntTag<float> d;
  const auto some = hn::RebindMask(d, hn::Gt(v, hn::Zero(Tag<float>())));
  return hn::IfThenElseZero(some, hn::Set(d, 1));
}
HWY_INLINE IntVec<double> positive(Vec<double> v) {
  const Tag<double> d;
  return to_whole(hn::IfThenElseZero(hn::Gt(v, hn::Zero(d)), hn::Set(d, 1.0)));
}

template <class A>
HWY_INLINE IntVec<A> all_whole(int64_t n) {
  return hn::Set(IntTag<A>(), static_cast<int32_t>(n));
}

/// v where it lies in [0, last], or else the end that is nearer.
template <class A>
HWY_INLINE IntVec<A> clamp(IntVec<A> v, IntVec<A> last) {
  return hn::Max(hn::Zero(IntTag<A>()), hn::Min(v, last));
}

/// A distance as whole tokens and a fraction, clipped to [min, max]; NaN is a
/// fraction. The ends are whole: as numbers of A those beyond 2^24 would be
/// rounded.
template <class A>
struct Distance {
  IntVec<A> whole;
  IntVec<A> edge;  ///< whole, and 1 more where there is a fraction
  Vec<A> rest;

  HWY_INLINE Distance(Vec<A> distance, IntVec<A> min, IntVec<A> max) {
    constexpr A kFurthest = 2147483520;  // the largest float below 2^31
    const Tag<A> d;
    const auto nan = hn::IsNaN(distance);
    const auto far = hn::Set(d, kFurthest);
    const auto clipped = hn::Max(hn::Neg(far), hn::Min(distance, far));
    const auto tokens = hn::Floor(clipped);
    const auto all = to_whole(hn::IfThenZeroElse(nan, tokens));
    whole = hn::Max(min, hn::Min(all, max));
    // Beyond an end, and from the last one on, there is no fraction.
    const auto between =
        inside<A>(hn::AndNot(hn::Lt(all, min), hn::Lt(all, max)));
    rest = hn::IfThenElseZero(between, hn::Sub(clipped, tokens));
    rest = hn::IfThenElse(nan, distance, rest);
    edge = hn::Add(whole, positive(rest));
  }
};

/// Some entries: their positions, and the distances to both edges.
template <class A>
struct WindowEntries {
  IntVec<A> t;
  Distance<A> left, right;
};

/// Makes WindowEntries of kLanes entries.
template <class A>
class EntryMaker {
 public:
  explicit EntryMaker(const TalkDistances<A>& in)
      : first_(all_whole<A>(in.first)),
        last_(all_whole<A>(in.valid - 1)),
        end_(all_whole<A>(in.first + (in.count - 1) / in.lanes)),
        shift_(std::countr_zero(static_cast<uint64_t>(in.lanes))) {}

  /// Of these distances; entries beyond the count are of the last position.
  HWY_INLINE WindowEntries<A>
  make(IntVec<A> entries, Vec<A> to_left, Vec<A> to_right) const {
    const auto position = hn::ShiftRightSame(entries, shift_);
    const auto t = hn::Min(hn::Add(first_, position), end_);
    const auto ahead = hn::Sub(last_, t);
    return {
        t,
        Distance<A>(to_left, hn::Neg(ahead), t),
        Distance<A>(to_right, hn::Neg(t), ahead)};
  }

 private:
  const IntVec<A> first_, last_, end_;
  const int shift_;
};

/// make(entries, distances to the left, to the right, h, i) of kLanes entries
/// from i on of head h, for all of them. Reads whole vectors.
template <class A, class Make>
HWY_INLINE void for_entries(const TalkDistances<A>& in, const Make& make) {
  constexpr int L = kLanes<A>;
  for (int64_t h = 0; h < in.heads; ++h) {
    auto entries = hn::Iota(IntTag<A>(), 0);
    for (int64_t i = 0; i < in.count; i += L) {
      const int64_t at = h * in.pitch + i;
      const auto right =
          in.right == nullptr ? hn::Zero(Tag<A>()) : load(in.right + at);
      make(entries, load(in.left + at), right, h, i);
      entries = hn::Add(entries, all_whole<A>(L));
    }
  }
}

}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
