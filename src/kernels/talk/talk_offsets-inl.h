#if defined(SEQCONV_KERNELS_TALK_OFFSETS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_TALK_OFFSETS_INL_H
#undef SEQCONV_KERNELS_TALK_OFFSETS_INL_H
#else
#define SEQCONV_KERNELS_TALK_OFFSETS_INL_H
#endif

#include <type_traits>

#include "kernels/common/vectors-inl.h"
#include "kernels/talk/talk_kernels.h"

/// Offsets of TaLK's windows and their gradients, which tensors hold position
/// by position, and tiles head by head.
HWY_BEFORE_NAMESPACE();
namespace seqconv::kernels::HWY_NAMESPACE {

template <class S, class A>
TalkExtremes<A> talk_extremes(const S* values, int64_t count) {
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

#if HWY_TARGET != HWY_SCALAR
/// Four numbers in every block of four lanes, of rows i, i + 4, ...; rows
/// beyond the last are that one again.
template <int kBlocks, class O>
HWY_INLINE auto
blocks_of_rows(const O* first, int64_t stride, int64_t i, int64_t last) {
  const hn::CappedTag<float, 4 * kBlocks> d;
  if constexpr (kBlocks == 1)
    return load_all(d, first + HWY_MIN(i, last) * stride);
  else
    return hn::Combine(
        d,
        blocks_of_rows<kBlocks / 2>(first, stride, i + 2 * kBlocks, last),
        blocks_of_rows<kBlocks / 2>(first, stride, i, last));
}

/// Four columns, each in a vector of its own. Rows beyond the last are that one
/// again.
template <class O>
HWY_INLINE void
four_columns(const O* first, int64_t stride, int64_t last, Vec<float>* out) {
  const Tag<float> d;
  const hn::Repartition<double, Tag<float>> dd;
  constexpr int kBlocks = kLanes<float> / 4;
  Vec<float> v[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i)
    v[i] = blocks_of_rows<kBlocks>(first, stride, i, last);
  const auto low = hn::BitCast(dd, hn::InterleaveLower(d, v[0], v[1]));
  const auto high = hn::BitCast(dd, hn::InterleaveUpper(d, v[0], v[1]));
  const auto low2 = hn::BitCast(dd, hn::InterleaveLower(d, v[2], v[3]));
  const auto high2 = hn::BitCast(dd, hn::InterleaveUpper(d, v[2], v[3]));
  out[0] = hn::BitCast(d, hn::InterleaveLower(dd, low, low2));
  out[1] = hn::BitCast(d, hn::InterleaveUpper(dd, low, low2));
  out[2] = hn::BitCast(d, hn::InterleaveLower(dd, high, high2));
  out[3] = hn::BitCast(d, hn::InterleaveUpper(dd, high, high2));
}
#endif

template <class O, class A>
void talk_distances(
    const TalkOffsets<O>& in,
    A tokens,
    int64_t pitch,
    A* distances) {
  [[maybe_unused]] constexpr int64_t L = kLanes<A>;
  int64_t h = 0;
#if HWY_TARGET != HWY_SCALAR
  if constexpr (sizeof(A) == 4)
    for (; h + 4 <= in.heads; h += 4)
      for (int64_t t = 0; t < in.rows; t += L) {
        const O* const from = in.data + t * in.heads + h;
        Vec<A> of[4];
        if (t + L <= in.rows)
          four_columns(from, in.heads, L - 1, of);
        else
          four_columns(from, in.heads, in.rows - t - 1, of);
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i)
          hn::StoreU(
              hn::Mul(of[i], hn::Set(Tag<A>(), tokens)),
              Tag<A>(),
              distances + (h + i) * pitch + t);
      }
#endif
  for (; h < in.heads; ++h)
    for (int64_t t = 0; t < in.rows; ++t)
      distances[h * pitch + t] = widen(in.data[t * in.heads + h]) * tokens;
}

template <class O, class A>
void talk_offset_gradients(
    const A* sums,
    int64_t pitch,
    A scale,
    const TalkOffsetGradients<O>& out) {
  [[maybe_unused]] constexpr int64_t L = kLanes<A>;
  int64_t h = 0;
#if HWY_TARGET != HWY_SCALAR
  if constexpr (std::is_same_v<O, float>)
    for (; h + 4 <= out.heads; h += 4)
      for (int64_t t = 0; t < out.rows; t += L) {
        const auto head = [&](int64_t i) HWY_ATTR {
          return hn::Mul(
              load(sums + (h + i) * pitch + t),
              hn::Set(Tag<A>(), scale));
        };
        HWY_ALIGN float fours[4 * L];
        hn::StoreInterleaved4(
            head(0),
            head(1),
            head(2),
            head(3),
            Tag<A>(),
            fours);
        const int64_t count = HWY_MIN(L, out.rows - t);
        const hn::Full128<float> four;
        for (int64_t i = 0; i < count; ++i)
          hn::StoreU(
              hn::Load(four, fours + 4 * i),
              four,
              out.data + (t + i) * out.stride + h);
      }
#endif
  for (; h < out.heads; ++h)
    for (int64_t t = 0; t < out.rows; ++t)
      out.data[t * out.stride + h] = narrow<O>(sums[h * pitch + t] * scale);
}

}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
