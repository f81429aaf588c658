#if defined(SEQCONV_KERNELS_STAGE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_STAGE_INL_H
#undef SEQCONV_KERNELS_STAGE_INL_H
#else
#define SEQCONV_KERNELS_STAGE_INL_H
#endif

#include "kernels/common/channels-inl.h"
#include "kernels/conv/conv_kernels.h"

/// Rows of the input close together, for products with rows of the output's
/// gradient.
HWY_BEFORE_NAMESPACE();
namespace seqconv::kernels::HWY_NAMESPACE {

/// Most rows of the input that a vector holds parts of: parts are blocks of 16
/// bytes or, where vectors have 64, two of them.
template <class A>
inline constexpr int kMaxPaired = kLanes<A> * sizeof(A) >= 32 ? 2 : 1;
/// Channels of one of P parts.
template <class A, int P>
inline constexpr int kPartLanes = kLanes<A> / P;
template <class A, int P>
using PartTag = hn::CappedTag<A, kPartLanes<A, P>>;

/// Where part c of row r of a stage is: P rows take turns, part by part.
template <class A, int P>
constexpr int64_t stage_index(int64_t r, int64_t c) {
  return r / P * (P * kStagePitch) + c * P + r % P * kPartLanes<A, P>;
}

/// Whether parts of a row of S share channels two by two, as vectors do in
/// channels-inl.h: those of which both are whole.
template <class S, int P>
inline constexpr bool kPartsShare = P == 2 && kSharing<S, 2> == 2;

/// The part that begins at channel c of `channels`; beyond them zeros.
template <class S, class A, int P>
HWY_INLINE hn::Vec<PartTag<A, P>>
load_part(const S* row, int64_t c, int64_t channels) {
  const PartTag<A, P> d;
  constexpr int64_t W = kPartLanes<A, P>;
  if (c >= channels)
    return hn::Zero(d);
  if (c + W > channels)
    return load_first(d, row + c, channels - c);
  if constexpr (kPartsShare<S, P>) {
    const int64_t both = c / (2 * W) * (2 * W);
    if (both + 2 * W <= channels) {
      const auto words = load_words(d, row + both);
      return c == both ? even_halves(d, words) : odd_halves(d, words);
    }
  }
  return load_all(d, row + c);
}

/// `channels` of a row, and zeros up to kStagePitch.
template <class S, class A, int P>
HWY_INLINE void stage_row(const S* in, int64_t channels, A* out) {
#pragma GCC unroll 8
  for (int64_t c = 0; c < kStagePitch; c += kPartLanes<A, P>)
    hn::StoreU(
        load_part<S, A, P>(in, c, channels),
        PartTag<A, P>(),
        out + stage_index<A, P>(0, c));
}

template <class S, class A, int P>
HWY_INLINE void stage_rows(const StageTile<S>& tile, A* out) {
  for (int64_t r = 0; r < tile.rows; ++r) {
    A* const to = out + stage_index<A, P>(r, 0);
    const bool exists = r >= tile.first && r < tile.last;
    const S* const in = tile.in + (exists ? r : tile.first) * tile.in_stride;
    // Heads of one stage are the common ones.
    if (exists && tile.channels == kStagePitch)
      stage_row<S, A, P>(in, kStagePitch, to);
    else
      stage_row<S, A, P>(in, exists ? tile.channels : 0, to);
  }
}

template <class S, class A>
void stage(const StageTile<S>& tile, A* out) {
  if (tile.paired)
    stage_rows<S, A, kMaxPaired<A>>(tile, out);
  else
    stage_rows<S, A, 1>(tile, out);
}

}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
