#if defined(SEQCONV_KERNELS_CHANNELS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_CHANNELS_INL_H
#undef SEQCONV_KERNELS_CHANNELS_INL_H
#else
#define SEQCONV_KERNELS_CHANNELS_INL_H
#endif

#include <type_traits>

#include "kernels/common/vectors-inl.h"

/// Blocks of vectors that hold neighbouring channels of a row, in the order in
/// which they are loaded and stored quickest. Kernels whose channels do not mix
/// never ask for that order.
HWY_BEFORE_NAMESPACE();
namespace seqconv::internal::kernels::HWY_NAMESPACE {

/// Vectors of a block of N that share their channels: pairs of bfloat16 are
/// words, whose halves, even channels and odd ones, become floats by a shift
/// and a mask. Order would take shuffles.
template <class S, int N>
inline constexpr int kSharing =
    std::is_same_v<S, BFloat16>&& N % 2 == 0 && HWY_TARGET != HWY_SCALAR ? 2 : 1;

/// As many words as vectors of D have floats, each of two bfloat16.
template <class D>
HWY_INLINE auto load_words(D d, const BFloat16* p) {
  const hn::RebindToUnsigned<D> du;
  const hn::Repartition<uint16_t, D> halves;
  return hn::BitCast(du, hn::LoadU(halves, &p->bits));
}
/// The first or the second ones as floats.
template <class D, class V>
HWY_INLINE hn::Vec<D> even_halves(D d, V words) {
  return hn::BitCast(d, hn::ShiftLeft<16>(words));
}
template <class D, class V>
HWY_INLINE hn::Vec<D> odd_halves(D d, V words) {
  const hn::RebindToUnsigned<D> du;
  return hn::BitCast(d, hn::And(words, hn::Set(du, 0xffff0000u)));
}

/// Vector v of the block of N vectors at p.
template <int N, class S>
HWY_INLINE Vec<AccumulatorOf<S>> load_channels(const S* p, int v) {
  constexpr int L = kLanes<AccumulatorOf<S>>;
  if constexpr (kSharing<S, N> == 1) {
    return load_wide(p + v * L);
  } else {
    const Tag<float> d;
    const auto words = load_words(d, p + v / 2 * 2 * L);
    return v % 2 == 0 ? even_halves(d, words) : odd_halves(d, words);
  }
}

/// Vector v of N of numbers that belong to channels of a tensor of type S.
template <class S, int N, class A>
HWY_INLINE Vec<A> load_beside_channels(const A* p, int v) {
  constexpr int L = kLanes<A>;
  if constexpr (kSharing<S, N> == 1) {
    return load(p + v * L);
#if HWY_TARGET != HWY_SCALAR
  } else {
    const Tag<A> d;
    const auto low = load(p + v / 2 * 2 * L);
    const auto high = load(p + (v / 2 * 2 + 1) * L);
    return v % 2 == 0 ? hn::ConcatEven(d, high, low) : hn::ConcatOdd(d, high, low);
#endif
  }
}

#if HWY_TARGET != HWY_SCALAR
/// The words of two vectors that share channels.
HWY_INLINE auto narrow_pair(Vec<float> even, Vec<float> odd) {
  const hn::RebindToUnsigned<Tag<float>> du;
  const hn::Repartition<uint16_t, Tag<float>> halves;
  return hn::BitCast(
      halves,
      hn::OrAnd(hn::ShiftRight<16>(round_bits(even)), round_bits(odd), hn::Set(du, 0xffff0000u)));
}
#endif

/// Stores the kShares vectors of v, of which p is where the first one would go
/// alone. streaming: past the caches if they fill whole vectors in memory, to
/// which p is aligned then.
template <int kShares, class V, class S>
HWY_INLINE void store_channels(const V* v, S* p, bool streaming) {
  if constexpr (kShares == 1) {
    streaming ? store_streaming(v[0], p) : store_narrow(v[0], p);
  } else {
    // Rounded in both branches: of one test for a whole block g++ then makes
    // two blocks.
    const hn::Repartition<uint16_t, Tag<float>> d;
    streaming ? hn::Stream(narrow_pair(v[0], v[1]), d, &p->bits)
              : hn::StoreU(narrow_pair(v[0], v[1]), d, &p->bits);
  }
}

}  // namespace seqconv::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
