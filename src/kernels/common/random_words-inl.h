#if defined(SEQCONV_KERNELS_RANDOM_WORDS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_RANDOM_WORDS_INL_H
#undef SEQCONV_KERNELS_RANDOM_WORDS_INL_H
#else
#define SEQCONV_KERNELS_RANDOM_WORDS_INL_H
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "base/random.h"
#include "kernels/dropout.h"

/// Philox on vectors of counters; see base/random.h for the function itself.
/// Auto-vectorised code is 3 times slower (measured).
HWY_BEFORE_NAMESPACE();
namespace seqconv::internal::kernels::HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

inline constexpr int64_t kGroupCounters = 1, kGroupWords = 4;
inline constexpr int kChains = 1;

template <int N>
void fill_groups(uint64_t seed, uint64_t counter, uint32_t* out) {
  static_assert(N == 1);
  const auto words = philox(seed, counter);
  for (int w = 0; w < 4; ++w)
    out[w] = words[w];
}

#else

namespace hn = hwy::HWY_NAMESPACE;

// The four 32-bit words of a counter stand in the low halves of 64-bit lanes of
// four vectors, where a 32 x 32 -> 64 bit product is one instruction that
// ignores the high halves.
using CounterTag = hn::ScalableTag<uint64_t>;
using WordTag = hn::Repartition<uint32_t, CounterTag>;
using Counters = hn::Vec<CounterTag>;
inline constexpr int64_t kGroupCounters = hn::MaxLanes(CounterTag());
inline constexpr int64_t kGroupWords = 4 * kGroupCounters;

HWY_INLINE Counters product(Counters counters, uint32_t multiplier) {
  const WordTag d;
  return hn::MulEven(hn::BitCast(d, counters), hn::Set(d, multiplier));
}

/// The low halves of `even`'s lanes, each followed by that of `odd`'s.
HWY_INLINE Counters paired(Counters even, Counters odd) {
  const WordTag d;
  return hn::BitCast(
      CounterTag(), hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd)), hn::BitCast(d, even)));
}

/// Groups whose independent chains hide the latency of the products.
inline constexpr int kChains = HWY_TARGET == HWY_AVX3 ? 4 : 2;

/// N groups that follow each other.
template <int N>
HWY_INLINE void fill_groups(uint64_t seed, uint64_t counter, uint32_t* out) {
  constexpr int64_t L = kGroupCounters;
  const CounterTag d;
  // Even lanes hold the first half of the counters, odd ones the others: then
  // interleaving pairs of words leaves the output in order.
  HWY_ALIGN uint64_t lanes[L];
  for (int64_t i = 0; i < L; ++i)
    lanes[i] = i / 2 + i % 2 * (L / 2);
  Counters c0[N], c1[N], c2[N], c3[N];
  for (int j = 0; j < N; ++j) {
    c0[j] = hn::Add(hn::Set(d, counter + j * L), hn::Load(d, lanes));
    c1[j] = hn::ShiftRight<32>(c0[j]);
    c2[j] = c3[j] = hn::Zero(d);
  }
  uint32_t k0 = static_cast<uint32_t>(seed);
  uint32_t k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const auto v0 = hn::Set(d, k0), v1 = hn::Set(d, k1);
    for (int j = 0; j < N; ++j) {
      const auto p0 = product(c0[j], 0xD2511F53u);
      const auto p1 = product(c2[j], 0xCD9E8D57u);
      c0[j] = hn::Xor3(hn::ShiftRight<32>(p1), c1[j], v0);
      c2[j] = hn::Xor3(hn::ShiftRight<32>(p0), c3[j], v1);
      c1[j] = p1;
      c3[j] = p0;
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  for (int j = 0; j < N; ++j) {
    const auto a = paired(c0[j], c1[j]), b = paired(c2[j], c3[j]);
    auto* const to = reinterpret_cast<uint64_t*>(out + j * kGroupWords);
    hn::StoreU(hn::InterleaveLower(d, a, b), d, to);
    hn::StoreU(hn::InterleaveUpper(d, a, b), d, to + kGroupCounters);
  }
}

#endif

inline void fill_words(uint64_t seed, uint64_t counter, int64_t groups, uint32_t* out) {
  const auto fill = [&]<int N>(int64_t g) HWY_ATTR {
    fill_groups<N>(seed, counter + g * kGroupCounters, out + g * kGroupWords);
  };
  int64_t g = 0;
  for (; g + kChains <= groups; g += kChains)
    fill.template operator()<kChains>(g);
  for (; g < groups; ++g)
    fill.template operator()<1>(g);
}

/// The words of elements [first, first + count), somewhere in `buffer`, which
/// has room for kRandomWordsSlack more.
inline const uint32_t* draw_words(uint64_t seed, uint64_t first, int64_t count, uint32_t* buffer) {
  const int64_t offset = static_cast<int64_t>(first % 4);
  const int64_t groups = (offset + count + kGroupWords - 1) / kGroupWords;
  fill_words(seed, first / 4, groups, buffer);
  return buffer + offset;
}

/// kernels::random_word_rows for this instruction set. Words come in fours:
/// where those of a row begin may differ.
inline WordRows draw_word_rows(
    uint64_t seed, uint64_t first, int64_t step, int64_t rows, int64_t count, uint32_t* buffer) {
  const int64_t stride = count + kRandomWordsSlack;
  for (int64_t r = 0; r < rows; ++r) {
    uint32_t* const row = buffer + r * stride;
    const uint32_t* const words = draw_words(seed, first + r * step, count, row);
    if (words != row)
      std::copy(words, words + count, row);
  }
  return {buffer, stride};
}

}  // namespace seqconv::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
