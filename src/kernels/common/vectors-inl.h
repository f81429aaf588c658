// Per-target include guard: this file is compiled once for each instruction
// set (conv_kernels.cpp).
#if defined(SEQCONV_KERNELS_VECTORS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_VECTORS_INL_H
#undef SEQCONV_KERNELS_VECTORS_INL_H
#else
#define SEQCONV_KERNELS_VECTORS_INL_H
#endif

#include <hwy/highway.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/bfloat16.h"

/// Vectors of the accumulator type A, loaded from and stored to the storage
/// type S.
HWY_BEFORE_NAMESPACE();
namespace seqconv::internal::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class A>
using Tag = hn::ScalableTag<A>;
template <class A>
using Vec = hn::Vec<Tag<A>>;
template <class A>
inline constexpr int kLanes = static_cast<int>(hn::MaxLanes(Tag<A>()));

/// How many vector registers blocks of accumulators may fill.
#if HWY_TARGET == HWY_AVX3 || HWY_ARCH_ARM
inline constexpr int kRegisters = 32;
#else
inline constexpr int kRegisters = 16;
#endif

template <class A>
HWY_INLINE Vec<A> load(const A* p) {
  return hn::LoadU(Tag<A>(), p);
}

/// The same vector, in a register: g++ would read memory again for every use,
/// and loads instead of products would set the pace.
template <class V>
HWY_INLINE V in_register(V v) {
#if HWY_TARGET == HWY_AVX3
  asm("" : "+v"(v.raw));
#elif HWY_TARGET == HWY_AVX2
  asm("" : "+x"(v.raw));
#endif
  return v;
}

/// The same pointer or integer, of which g++ knows nothing: it would make
/// vectors of several, or many of one.
template <class V>
HWY_INLINE V scalar(V v) {
#if HWY_COMPILER_GCC
  asm("" : "+r"(v));
#endif
  return v;
}

/// The bits of as many bfloat16 as vectors of D have floats -> these.
template <class D, class V>
HWY_INLINE hn::Vec<D> widen_bits(D d, V bits) {
  const hn::RebindToUnsigned<D> du;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, bits)));
}
/// A vector of D.
template <class D>
HWY_INLINE hn::Vec<D> load_all(D d, const hn::TFromD<D>* p) {
  return hn::LoadU(d, p);
}
template <class D>
HWY_INLINE hn::Vec<D> load_all(D d, const BFloat16* p) {
  const hn::Rebind<uint16_t, D> half;
  return widen_bits(d, hn::LoadU(half, reinterpret_cast<const uint16_t*>(p)));
}
template <class S>
HWY_INLINE auto load_wide(const S* p) {
  return load_all(Tag<AccumulatorOf<S>>(), p);
}

HWY_INLINE void store_narrow(Vec<float> v, float* p) {
  hn::StoreU(v, Tag<float>(), p);
}
HWY_INLINE void store_narrow(Vec<double> v, double* p) {
  hn::StoreU(v, Tag<double>(), p);
}
/// Rounds results, whose NaNs are quiet, to bfloat16, to nearest, ties to even:
/// the upper halves of the words. NaN stays NaN.
HWY_INLINE auto round_bits(Vec<float> v) {
  const hn::RebindToUnsigned<Tag<float>> du;
  const auto word = hn::BitCast(du, v);
  const auto one = hn::Set(du, 0x10000u), below_half = hn::Set(du, 0x7fffu);
  const auto odd = hn::VecFromMask(du, hn::TestBit(word, one));  // -1
  const auto number = hn::RebindMask(du, hn::Eq(v, v));
  return hn::Add(word, hn::IfThenElseZero(number, hn::Sub(below_half, odd)));
}
HWY_INLINE auto narrow_bits(Vec<float> v) {
  const hn::Rebind<uint16_t, Tag<float>> half;
  return hn::TruncateTo(half, hn::ShiftRight<16>(round_bits(v)));
}
HWY_INLINE void store_narrow(Vec<float> v, BFloat16* p) {
  const hn::Rebind<uint16_t, Tag<float>> half;
  hn::StoreU(narrow_bits(v), half, reinterpret_cast<uint16_t*>(p));
}

/// Stores of whole, aligned vectors that go past the caches.
template <class A>
HWY_INLINE void store_streaming(Vec<A> v, A* p) {
  hn::Stream(v, Tag<A>(), p);
}
HWY_INLINE void store_streaming(Vec<float> v, BFloat16* p) {
  store_narrow(v, p);
}

/// Whether parts of vectors of S are read and written with masks, which touch
/// nothing beyond them.
template <class S>
inline constexpr bool kMasks = HWY_TARGET == HWY_AVX3 || (HWY_TARGET == HWY_AVX2 && sizeof(S) >= 4);

/// The first `count` lanes of a vector of D, the others zero.
template <class D>
HWY_INLINE hn::Vec<D> load_masked(D d, const hn::TFromD<D>* p, int64_t count) {
  return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(count)), d, p);
}
template <class D>
HWY_INLINE hn::Vec<D> load_masked(D d, const BFloat16* p, int64_t count) {
  const hn::Rebind<uint16_t, D> half;
  return widen_bits(d, load_masked(half, reinterpret_cast<const uint16_t*>(p), count));
}

/// The first `count` < 5 of four bfloat16 as one word, the others zero; reads
/// nothing beyond them.
HWY_INLINE uint64_t load_word(const BFloat16* p, int64_t count) {
  uint64_t word = 0;
  if (count >= 4) {
    std::memcpy(&word, p, 8);
    return word;
  }
  if (count >= 2) {
    uint32_t two;
    std::memcpy(&two, p, 4);
    word = two;
  }
  if (count % 2 == 1)
    word |= uint64_t{p[count - 1].bits} << 16 * (count - 1);
  return word;
}
/// Stores them.
HWY_INLINE void store_word(uint64_t word, BFloat16* p, int64_t count) {
  if (count >= 4) {
    std::memcpy(static_cast<void*>(p), &word, 8);
    return;
  }
  if (count >= 2)
    std::memcpy(static_cast<void*>(p), &word, 4);
  if (count % 2 == 1)
    p[count - 1].bits = static_cast<uint16_t>(word >> 16 * (count - 1));
}

/// Whether the bfloat16 of as many lanes are one or two words.
constexpr bool are_words(int64_t lanes) {
  return std::endian::native == std::endian::little && (lanes == 4 || lanes == 8);
}

/// The first `count` lanes of a vector of D, the others zero; reads nothing
/// beyond them.
template <class D, class S>
HWY_INLINE hn::Vec<D> load_first(D d, const S* p, int64_t count) {
  constexpr auto kMax = static_cast<int64_t>(hn::MaxLanes(D()));
  if constexpr (kMasks<S>) {
    return load_masked(d, p, HWY_MIN(count, kMax));
  } else if constexpr (std::is_same_v<S, BFloat16> && are_words(kMax)) {
    const hn::Rebind<uint16_t, D> half;
    const hn::Repartition<uint64_t, decltype(half)> dw;
    auto words = hn::Set(dw, load_word(p, count));
#if HWY_TARGET != HWY_SCALAR
    if constexpr (kMax == 8) {
      const uint64_t behind = count > 4 ? load_word(p + 4, count - 4) : 0;
      words = hn::InterleaveLower(dw, words, hn::Set(dw, behind));
    }
#endif
    return widen_bits(d, hn::BitCast(half, words));
  } else {
    HWY_ALIGN hn::TFromD<D> lanes[kMax] = {};
    for (int64_t i = 0; i < HWY_MIN(count, kMax); ++i)
      lanes[i] = widen(p[i]);
    return hn::Load(d, lanes);
  }
}

/// The same of a whole vector, which most are.
template <class A, class S>
HWY_INLINE Vec<A> load_some(const S* p, int64_t count) {
  return count >= kLanes<A> ? load_wide(p) : load_first(Tag<A>(), p, count);
}

/// Stores the first `count` lanes.
template <class D>
HWY_INLINE void store_masked(hn::Vec<D> v, D d, hn::TFromD<D>* p, int64_t count) {
  hn::BlendedStore(v, hn::FirstN(d, static_cast<size_t>(count)), d, p);
}
HWY_INLINE void store_masked(Vec<float> v, Tag<float>, BFloat16* p, int64_t count) {
  store_masked(
      narrow_bits(v), hn::Rebind<uint16_t, Tag<float>>(), reinterpret_cast<uint16_t*>(p), count);
}

template <class A, class S>
HWY_INLINE void store_some(Vec<A> v, S* p, int64_t count) {
  if (count >= kLanes<A>)
    return store_narrow(v, p);
  if constexpr (kMasks<S>) {
    store_masked(v, Tag<A>(), p, count);
  } else if constexpr (std::is_same_v<S, BFloat16> && are_words(kLanes<A>)) {
    const auto bits = narrow_bits(v);
    const hn::Repartition<uint64_t, hn::DFromV<decltype(bits)>> dw;
    const auto words = hn::BitCast(dw, bits);
    store_word(hn::GetLane(words), p, count);
    if constexpr (kLanes<A> == 8)
      if (count > 4)
        store_word(hn::ExtractLane(words, 1), p + 4, count - 4);
  } else {
    HWY_ALIGN S lanes[kLanes<A>];
    store_narrow(v, lanes);
    for (int64_t i = 0; i < count; ++i)
      p[i] = lanes[i];
  }
}

#if HWY_TARGET != HWY_SCALAR
/// Joins groups of kBytes within twice as many lanes (of 4 bytes: those two
/// apart), those of a to even places, those of b to odd ones.
template <int kBytes, class A, class Join>
HWY_INLINE Vec<A> join_neighbours(Vec<A> a, Vec<A> b, const Join& join) {
  const Tag<A> d;
  if constexpr (kBytes == 4) {
    return join(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
  } else if constexpr (kBytes == 8) {
    const hn::Repartition<double, Tag<A>> dd;
    const auto x = hn::BitCast(dd, a), y = hn::BitCast(dd, b);
    return join(
        hn::BitCast(d, hn::InterleaveLower(dd, x, y)),
        hn::BitCast(d, hn::InterleaveUpper(dd, x, y)));
  } else if constexpr (kBytes == 16) {
    return join(hn::OddEvenBlocks(b, a), hn::SwapAdjacentBlocks(hn::OddEvenBlocks(a, b)));
  } else {
    return join(hn::ConcatUpperLower(d, b, a), hn::ConcatLowerUpper(d, b, a));
  }
}

/// The sums of N vectors over groups of kBytes -> one vector, two by two.
template <int kBytes, class A, int N>
HWY_INLINE void add_all_neighbours(Vec<A>* v) {
#pragma GCC unroll 8
  for (int i = 0; i < N / 2; ++i)
    v[i] = join_neighbours<kBytes, A>(
        v[2 * i], v[2 * i + 1], [](Vec<A> a, Vec<A> b) HWY_ATTR { return hn::Add(a, b); });
  if constexpr (N > 2)
    add_all_neighbours<2 * kBytes, A, N / 2>(v);
}
#endif

/// Sums over the lanes of kLanes vectors: lane i of the result is the sum of
/// v[i]. Destroys v.
template <class A>
HWY_INLINE Vec<A> lane_sums(Vec<A>* v) {
#if HWY_TARGET != HWY_SCALAR
  add_all_neighbours<static_cast<int>(sizeof(A)), A, kLanes<A>>(v);
#endif
  return v[0];
}

}  // namespace seqconv::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
