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
namespace seqconv::internal::kernels::HWY_NAMESPACE {

template <class A>
using IntTag = hn::RebindToSigned<Tag<A>>;
template <class A>
using IntVec = hn::Vec<IntTag<A>>;

/// The row that an edge stands in, so many away, and the share of it that the
/// window holds. Distances are clipped to [min, max]; that of NaN is 0, its
/// share NaN. The ends are whole numbers: as those of A they would be rounded
/// beyond 2^24.
template <class A>
struct Edge {
  IntVec<A> away;
  Vec<A> share;

  HWY_INLINE Edge(Vec<A> distance, IntVec<A> min, IntVec<A> max) {
    constexpr A kFurthest = 2147483520;  // the largest float below 2^31
    const Tag<A> d;
    const auto nan = hn::IsNaN(distance);
    const auto far = hn::Set(d, kFurthest);
    const auto clipped = hn::Max(hn::Neg(far), hn::Min(distance, far));
    const auto all = hn::ConvertTo(IntTag<A>(), hn::IfThenZeroElse(nan, hn::Ceil(clipped)));
    away = hn::Max(min, hn::Min(all, max));
    // Up to an end, and beyond the other one, rows are whole.
    const auto between = hn::AndNot(hn::Gt(all, max), hn::Gt(all, min));
    const auto rest = hn::Sub(clipped, hn::Floor(clipped));
    const auto some = hn::And(hn::RebindMask(d, between), hn::Gt(rest, hn::Zero(d)));
    share = hn::IfThenElse(some, rest, hn::Set(d, A(1)));
    share = hn::IfThenElse(nan, distance, share);
  }
};

/// Distances of some rows to the edges on one side of their windows. Apart from
/// vectors made of them, which would wait for every single store.
template <class A, class O>
HWY_INLINE void distances(const O* offsets, int64_t stride, int64_t count, int64_t max, A* out) {
  for (int64_t i = 0; i < count; ++i)
    out[i] = widen(offsets[i * stride]) * static_cast<A>(max);
}

template <class O, class A>
void talk_windows(const TalkOffsets<O>& in, TalkWindow<A>* out) {
  constexpr int64_t L = kLanes<A>, kBlock = 256;
  static_assert(L <= kTalkSpare);
  static_assert(sizeof(TalkWindow<A>) == 4 * sizeof(A));
  const Tag<A> d;
  const auto whole = [](int64_t n) HWY_ATTR {
    return hn::Set(IntTag<A>(), static_cast<hn::TFromD<IntTag<A>>>(n));
  };
  const auto end = whole(in.valid - 1);
  HWY_ALIGN A left[kBlock] = {}, right[kBlock] = {};
  for (int64_t from = 0; from < in.count; from += kBlock) {
    const int64_t count = HWY_MIN(kBlock, in.count - from);
    const int64_t at = from * in.stride;
    distances(in.left + at, in.stride, count, in.max_left, left);
    if (in.right != nullptr)
      distances(in.right + at, in.stride, count, in.max_right, right);
    auto t = hn::Add(whole(in.first + from), hn::Iota(IntTag<A>(), 0));
    for (int64_t i = 0; i < count; i += L) {
      const auto ahead = hn::Sub(end, t);
      const Edge<A> to_left(load(left + i), hn::Neg(ahead), t);
      const Edge<A> to_right(load(right + i), hn::Neg(t), ahead);
      hn::StoreInterleaved4(
          hn::BitCast(d, hn::Sub(t, to_left.away)),
          hn::BitCast(d, hn::Add(t, to_right.away)),
          to_left.share,
          to_right.share,
          d,
          reinterpret_cast<A*>(out + from + i));
      t = hn::Add(t, whole(L));
    }
  }
}

template <class O, class A>
TalkExtremes<A> talk_extremes(const O* values, int64_t count) {
  constexpr int64_t L = kLanes<A>, kSide = 4;  // no comparison waits for the one before
  const Tag<A> d;
  Vec<A> min[kSide], max[kSide];
  for (int64_t n = 0; n < kSide; ++n)
    min[n] = max[n] = hn::Zero(d);
  // Comparisons with NaN are false.
  const auto add = [&](Vec<A> v, int64_t n) HWY_ATTR {
    min[n] = hn::IfThenElse(hn::Lt(v, min[n]), v, min[n]);
    max[n] = hn::IfThenElse(hn::Gt(v, max[n]), v, max[n]);
  };
  int64_t i = 0;
  for (; i + kSide * L <= count; i += kSide * L)
#pragma GCC unroll 4
    for (int64_t n = 0; n < kSide; ++n)
      add(load_wide(values + i + n * L), n);
  for (; i < count; i += L)
    add(load_some<A>(values + i, count - i), 0);
  for (int64_t n = 1; n < kSide; ++n) {
    add(min[n], 0);
    add(max[n], 0);
  }
  return {hn::GetLane(hn::MinOfLanes(d, min[0])), hn::GetLane(hn::MaxOfLanes(d, max[0]))};
}

}  // namespace seqconv::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
