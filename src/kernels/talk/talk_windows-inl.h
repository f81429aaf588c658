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

/// Numbers that are whole as int32, and back.
HWY_INLINE IntVec<float> to_int(Vec<float> v) {
  return hn::ConvertTo(IntTag<float>(), v);
}
HWY_INLINE IntVec<double> to_int(Vec<double> v) {
  return hn::DemoteTo(IntTag<double>(), v);
}
HWY_INLINE Vec<float> to_real(Tag<float> d, IntVec<float> v) {
  return hn::ConvertTo(d, v);
}
HWY_INLINE Vec<double> to_real(Tag<double> d, IntVec<double> v) {
  return hn::PromoteTo(d, v);
}

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
    const auto all = to_int(hn::IfThenZeroElse(nan, hn::Ceil(clipped)));
    away = hn::Max(min, hn::Min(all, max));
    // Up to an end, and beyond the other one, rows are whole.
    const auto between = hn::AndNot(hn::Gt(all, max), hn::Gt(all, min));
    const auto one = hn::IfThenElseZero(between, hn::Set(IntTag<A>(), 1));
    const auto rest =
        hn::Mul(hn::Sub(clipped, hn::Floor(clipped)), to_real(d, one));
    share = hn::IfThenElse(hn::Eq(rest, hn::Zero(d)), hn::Set(d, A(1)), rest);
    share = hn::IfThenElse(nan, distance, share);
  }
};

/// Distances of some rows to the edges on one side of their windows. Apart from
/// vectors made of them, which would wait for every single store.
template <class A, class O>
HWY_INLINE void distances(
    const O* offsets,
    int64_t stride,
    int64_t count,
    int64_t max,
    A* out) {
  for (int64_t i = 0; i < count; ++i)
    out[i] = widen(offsets[i * stride]) * static_cast<A>(max);
}

HWY_INLINE void store_windows(
    IntVec<float> first,
    IntVec<float> last,
    Vec<float> left,
    Vec<float> right,
    TalkWindow<float>* out) {
  const Tag<float> d;
  static_assert(sizeof(*out) == 4 * sizeof(float));
  hn::StoreInterleaved4(
      hn::BitCast(d, first),
      hn::BitCast(d, last),
      left,
      right,
      d,
      reinterpret_cast<float*>(out));
}

HWY_INLINE void store_windows(
    IntVec<double> first,
    IntVec<double> last,
    Vec<double> left,
    Vec<double> right,
    TalkWindow<double>* out) {
  const Tag<double> d;
  const hn::RebindToSigned<Tag<double>> di;
  static_assert(sizeof(*out) == 3 * sizeof(double));
  const auto low = hn::PromoteTo(di, first);
  const auto rows = hn::Or(low, hn::ShiftLeft<32>(hn::PromoteTo(di, last)));
  hn::StoreInterleaved3(
      hn::BitCast(d, rows),
      left,
      right,
      d,
      reinterpret_cast<double*>(out));
}

template <class O, class A>
void talk_windows(const TalkOffsets<O>& in, TalkWindow<A>* out) {
  constexpr int64_t L = kLanes<A>, kBlock = 256;
  static_assert(L <= kTalkSpare);
  const IntTag<A> di;
  const auto end = hn::Set(di, static_cast<int32_t>(in.valid - 1));
  HWY_ALIGN A left[kBlock] = {}, right[kBlock] = {};
  for (int64_t from = 0; from < in.count; from += kBlock) {
    const int64_t count = HWY_MIN(kBlock, in.count - from);
    const int64_t at = from * in.stride;
    distances(in.left + at, in.stride, count, in.max_left, left);
    if (in.right != nullptr)
      distances(in.right + at, in.stride, count, in.max_right, right);
    auto t = hn::Iota(di, static_cast<int32_t>(in.first + from));
    for (int64_t i = 0; i < count; i += L) {
      const auto ahead = hn::Sub(end, t);
      const Edge<A> to_left(load(left + i), hn::Neg(ahead), t);
      const Edge<A> to_right(load(right + i), hn::Neg(t), ahead);
      store_windows(
          hn::Sub(t, to_left.away),
          hn::Add(t, to_right.away),
          to_left.share,
          to_right.share,
          out + from + i);
      t = hn::Add(t, hn::Set(di, static_cast<int32_t>(L)));
    }
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
