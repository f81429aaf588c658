#if defined(SEQCONV_KERNELS_TALK_WINDOWS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_TALK_WINDOWS_INL_H
#undef SEQCONV_KERNELS_TALK_WINDOWS_INL_H
#else
#define SEQCONV_KERNELS_TALK_WINDOWS_INL_H
#endif

#include "kernels/common/vectors-inl.h"
#include "kernels/talk/talk_kernels.h"

/// TaLK's windows, made of offsets. Distances, not positions, are what is
/// rounded.
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

/// A distance as whole rows and a fraction, clipped to [min, max]; NaN is a
/// fraction. The ends are whole: as numbers of A those beyond 2^24 would be
/// rounded.
template <class A>
struct Distance {
  IntVec<A> whole;
  Vec<A> rest;

  HWY_INLINE Distance(Vec<A> distance, IntVec<A> min, IntVec<A> max) {
    constexpr A kFurthest = 2147483520;  // the largest float below 2^31
    const Tag<A> d;
    const auto nan = hn::IsNaN(distance);
    const auto far = hn::Set(d, kFurthest);
    const auto clipped = hn::Max(hn::Neg(far), hn::Min(distance, far));
    const auto rows = hn::Floor(clipped);
    const auto all = to_whole(hn::IfThenZeroElse(nan, rows));
    whole = hn::Max(min, hn::Min(all, max));
    // Beyond an end, and from the last one on, there is no fraction.
    const auto between =
        inside<A>(hn::AndNot(hn::Lt(all, min), hn::Lt(all, max)));
    rest = hn::IfThenElseZero(between, hn::Sub(clipped, rows));
    rest = hn::IfThenElse(nan, distance, rest);
  }
};

/// Of kLanes rows; those beyond the last of `count` are that one again.
template <class A, class O>
HWY_INLINE Vec<A>
distances(const O* offsets, int64_t stride, int64_t count, int64_t rows) {
  const Tag<A> d;
  if (offsets == nullptr)
    return hn::Zero(d);
  HWY_ALIGN A lanes[kLanes<A>];
  for (int64_t i = 0; i < kLanes<A>; ++i)
    lanes[i] = widen(offsets[HWY_MIN(i, count - 1) * stride]);
  return hn::Mul(hn::Load(d, lanes), hn::Set(d, static_cast<A>(rows)));
}

HWY_INLINE void store_windows(
    IntVec<float> low,
    IntVec<float> behind,
    Vec<float> left,
    Vec<float> right,
    TalkWindow<float>* out) {
  const Tag<float> d;
  static_assert(sizeof(*out) == 4 * sizeof(float));
  hn::StoreInterleaved4(
      hn::BitCast(d, low),
      hn::BitCast(d, behind),
      left,
      right,
      d,
      reinterpret_cast<float*>(out));
}

/// Windows of double are for checks: one after the other.
HWY_INLINE void store_windows(
    IntVec<double> low,
    IntVec<double> behind,
    Vec<double> left,
    Vec<double> right,
    TalkWindow<double>* out) {
  constexpr int L = kLanes<double>;
  int32_t rows[2][L];
  double parts[2][L];
  hn::StoreU(low, IntTag<double>(), rows[0]);
  hn::StoreU(behind, IntTag<double>(), rows[1]);
  hn::StoreU(left, Tag<double>(), parts[0]);
  hn::StoreU(right, Tag<double>(), parts[1]);
  for (int i = 0; i < L; ++i)
    out[i] = {rows[0][i], rows[1][i], parts[0][i], parts[1][i]};
}

template <class O, class A>
void talk_windows(const TalkOffsets<O>& in, TalkWindow<A>* out) {
  constexpr int L = kLanes<A>;
  static_assert(L <= kTalkSpare);
  const IntTag<A> di;
  const auto last = hn::Set(di, static_cast<int32_t>(in.valid - 1));
  auto t = hn::Iota(di, static_cast<int32_t>(in.first));
  for (int64_t i = 0; i < in.count; i += L) {
    const auto make = [&](const O* offsets, int64_t rows) HWY_ATTR {
      const O* const from =
          offsets == nullptr ? nullptr : offsets + i * in.stride;
      return distances<A>(from, in.stride, in.count - i, rows);
    };
    const auto ahead = hn::Sub(last, t);
    const Distance<A> left(make(in.left, in.max_left), hn::Neg(ahead), t);
    const Distance<A> right(make(in.right, in.max_right), hn::Neg(t), ahead);
    store_windows(
        hn::Sub(t, left.whole),
        hn::Add(hn::Add(t, right.whole), hn::Set(di, 2)),
        left.rest,
        right.rest,
        out + i);
    t = hn::Add(t, hn::Set(di, L));
  }
}

template <class O, class A>
TalkExtremes<A> talk_extremes(const O* values, int64_t count) {
  const Tag<A> d;
  auto min = hn::Zero(d), max = min;
  for (int64_t i = 0; i < count; i += kLanes<A>) {
    const auto v = load_some<A>(values + i, count - i);
    // Comparisons with NaN are false.
    min = hn::IfThenElse(hn::Lt(v, min), v, min);
    max = hn::IfThenElse(hn::Gt(v, max), v, max);
  }
  return {
      hn::GetLane(hn::MinOfLanes(d, min)),
      hn::GetLane(hn::MaxOfLanes(d, max))};
}

}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
