#include "seqconv/kernels/random_words.h"

#include "seqconv/base/random.h"

#if defined(__x86_64__)
// g++ 12 takes its own _mm512_undefined_epi32 for a mistake.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#endif

namespace seqconv::kernels {
namespace {

// Philox works on groups of 8 counters, 32 words; see base/random.h for the
// function itself. The four 32-bit words of a counter stand in the low halves
// of 64-bit lanes of four registers, where a 32 x 32 -> 64 bit product is one
// instruction that ignores the high halves. Auto-vectorised code is 3 times
// slower (measured), hence the intrinsics.
constexpr int64_t kGroupCounters = 8;
constexpr int64_t kGroupWords = 4 * kGroupCounters;
constexpr int kRounds = 10;
constexpr uint32_t kMultiplier0 = 0xD2511F53u;
constexpr uint32_t kMultiplier1 = 0xCD9E8D57u;
constexpr uint32_t kWeyl0 = 0x9E3779B9u;
constexpr uint32_t kWeyl1 = 0xBB67AE85u;

using Fill =
    void (*)(uint64_t seed, uint64_t counter, int64_t groups, uint32_t*);

void fill_plain(
    uint64_t seed,
    uint64_t counter,
    int64_t groups,
    uint32_t* out) {
  for (int64_t i = 0; i < groups * kGroupCounters; ++i) {
    const auto words = philox(seed, counter + i);
    for (int w = 0; w < 4; ++w)
      out[4 * i + w] = words[w];
  }
}

#if defined(__x86_64__)

/// N groups at a time: independent chains hide the latency of the products.
template <int N>
__attribute__((target("avx512f"), always_inline)) inline void
groups_avx512(uint64_t seed, uint64_t counter, uint32_t* out) {
  // Even lanes hold counters 0..3, odd ones 4..7: then unpacking pairs of
  // words leaves the output in order.
  const __m512i lanes = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
  const __m512i m0 = _mm512_set1_epi64(kMultiplier0);
  const __m512i m1 = _mm512_set1_epi64(kMultiplier1);
  const __m512i low = _mm512_set1_epi64(0xffffffff);
  __m512i c0[N], c1[N], c2[N], c3[N];
  for (int j = 0; j < N; ++j) {
    c0[j] = _mm512_add_epi64(
        _mm512_set1_epi64(counter + j * kGroupCounters),
        lanes);
    c1[j] = _mm512_srli_epi64(c0[j], 32);
    c2[j] = c3[j] = _mm512_setzero_si512();
  }
  uint32_t k0 = static_cast<uint32_t>(seed);
  uint32_t k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < kRounds; ++round) {
    const __m512i v0 = _mm512_set1_epi64(k0), v1 = _mm512_set1_epi64(k1);
    for (int j = 0; j < N; ++j) {
      const __m512i p0 = _mm512_mul_epu32(c0[j], m0);
      const __m512i p1 = _mm512_mul_epu32(c2[j], m1);
      constexpr int kXor3 = 0x96;
      c0[j] = _mm512_ternarylogic_epi64(
          _mm512_srli_epi64(p1, 32),
          c1[j],
          v0,
          kXor3);
      c2[j] = _mm512_ternarylogic_epi64(
          _mm512_srli_epi64(p0, 32),
          c3[j],
          v1,
          kXor3);
      c1[j] = p1;
      c3[j] = p0;
    }
    k0 += kWeyl0;
    k1 += kWeyl1;
  }
  for (int j = 0; j < N; ++j) {
    const __m512i a = _mm512_or_si512(
        _mm512_and_si512(c0[j], low),
        _mm512_slli_epi64(c1[j], 32));
    const __m512i b = _mm512_or_si512(
        _mm512_and_si512(c2[j], low),
        _mm512_slli_epi64(c3[j], 32));
    uint32_t* to = out + j * kGroupWords;
    _mm512_storeu_si512(to, _mm512_unpacklo_epi64(a, b));
    _mm512_storeu_si512(to + kGroupWords / 2, _mm512_unpackhi_epi64(a, b));
  }
}

__attribute__((target("avx512f"))) void
fill_avx512(uint64_t seed, uint64_t counter, int64_t groups, uint32_t* out) {
  int64_t g = 0;
  for (; g + 4 <= groups; g += 4)
    groups_avx512<4>(seed, counter + g * kGroupCounters, out + g * kGroupWords);
  for (; g < groups; ++g)
    groups_avx512<1>(seed, counter + g * kGroupCounters, out + g * kGroupWords);
}

/// One group as two registers of 4 counters for each word.
__attribute__((target("avx2"))) void
fill_avx2(uint64_t seed, uint64_t counter, int64_t groups, uint32_t* out) {
  constexpr int kParts = 2;
  const __m256i lanes = _mm256_setr_epi64x(0, 2, 1, 3);
  const __m256i m0 = _mm256_set1_epi64x(kMultiplier0);
  const __m256i m1 = _mm256_set1_epi64x(kMultiplier1);
  const __m256i low = _mm256_set1_epi64x(0xffffffff);
  for (int64_t g = 0; g < groups; ++g) {
    __m256i c0[kParts], c1[kParts], c2[kParts], c3[kParts];
    for (int j = 0; j < kParts; ++j) {
      c0[j] = _mm256_add_epi64(
          _mm256_set1_epi64x(counter + g * kGroupCounters + 4 * j),
          lanes);
      c1[j] = _mm256_srli_epi64(c0[j], 32);
      c2[j] = c3[j] = _mm256_setzero_si256();
    }
    uint32_t k0 = static_cast<uint32_t>(seed);
    uint32_t k1 = static_cast<uint32_t>(seed >> 32);
    for (int round = 0; round < kRounds; ++round) {
      const __m256i v0 = _mm256_set1_epi64x(k0), v1 = _mm256_set1_epi64x(k1);
      for (int j = 0; j < kParts; ++j) {
        const __m256i p0 = _mm256_mul_epu32(c0[j], m0);
        const __m256i p1 = _mm256_mul_epu32(c2[j], m1);
        c0[j] = _mm256_xor_si256(
            _mm256_xor_si256(_mm256_srli_epi64(p1, 32), c1[j]),
            v0);
        c2[j] = _mm256_xor_si256(
            _mm256_xor_si256(_mm256_srli_epi64(p0, 32), c3[j]),
            v1);
        c1[j] = p1;
        c3[j] = p0;
      }
      k0 += kWeyl0;
      k1 += kWeyl1;
    }
    for (int j = 0; j < kParts; ++j) {
      const __m256i a = _mm256_or_si256(
          _mm256_and_si256(c0[j], low),
          _mm256_slli_epi64(c1[j], 32));
      const __m256i b = _mm256_or_si256(
          _mm256_and_si256(c2[j], low),
          _mm256_slli_epi64(c3[j], 32));
      auto* to = reinterpret_cast<__m256i*>(out + g * kGroupWords + j * 4 * 4);
      _mm256_storeu_si256(to, _mm256_unpacklo_epi64(a, b));
      _mm256_storeu_si256(to + 1, _mm256_unpackhi_epi64(a, b));
    }
  }
}

#endif

Fill best_fill() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f"))
    return fill_avx512;
  if (__builtin_cpu_supports("avx2"))
    return fill_avx2;
#endif
  return fill_plain;
}

}  // namespace

const uint32_t*
random_words(uint64_t seed, uint64_t first, int64_t count, uint32_t* buffer) {
  static const Fill fill = best_fill();
  const int64_t offset = static_cast<int64_t>(first % 4);
  const int64_t groups = (offset + count + kGroupWords - 1) / kGroupWords;
  fill(seed, first / 4, groups, buffer);
  return buffer + offset;
}

}  // namespace seqconv::kernels
