#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "seqconv/kernels/cuda/storage.h"

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

/// What lets one source be compiled by nvcc for the device and by g++ for the
/// tests: SEQCONV_HD marks index arithmetic, SEQCONV_DEVICE what only kernels
/// (or their emulation on the host) call.
#ifdef __CUDACC__
#define SEQCONV_HD __host__ __device__ inline
#define SEQCONV_DEVICE __device__ inline
#else
#define SEQCONV_HD inline
#define SEQCONV_DEVICE inline
#endif
#ifdef __CUDA_ARCH__
#define SEQCONV_UNROLL _Pragma("unroll")
#define SEQCONV_NO_UNROLL _Pragma("unroll 1")
#else
#define SEQCONV_UNROLL
#define SEQCONV_NO_UNROLL
#endif

namespace seqconv::kernels::cuda {

template <class I>
SEQCONV_HD constexpr I min(I a, I b) {
  return a < b ? a : b;
}
template <class I>
SEQCONV_HD constexpr I max(I a, I b) {
  return a < b ? b : a;
}
template <class I>
SEQCONV_HD constexpr I clamped(I value, I low, I high) {
  return max(low, min(value, high));
}
template <class I>
SEQCONV_HD constexpr I chunks_of(I count, I size) {
  return (count + size - 1) / size;
}
template <class I>
SEQCONV_HD constexpr I round_up(I count, I size) {
  return chunks_of(count, size) * size;
}

/// i * step for numbers that are not negative: one instruction on the device.
SEQCONV_HD int64_t offset_of(int i, int step) {
  return static_cast<int64_t>(
      uint64_t{static_cast<uint32_t>(i)} * static_cast<uint32_t>(step));
}

/// Division by a number that is known before: n / d for n * d < 2^32.
struct Divisor {
  uint32_t factor = 0;  ///< 2^32 / d, rounded up; 0 for d = 1

  Divisor() = default;
  SEQCONV_HD explicit Divisor(int d)
      : factor(0xffffffffu / static_cast<uint32_t>(d) + 1) {}
  SEQCONV_HD int quotient(int n) const {
    const uint64_t product = uint64_t{factor} * static_cast<uint32_t>(n);
    return factor == 0 ? n : static_cast<int>(product >> 32);
  }
};

SEQCONV_HD float widen(float value) {
  return value;
}
SEQCONV_HD double widen(double value) {
  return value;
}
SEQCONV_HD float widen(BFloat16 value) {
  const uint32_t word = static_cast<uint32_t>(value.bits) << 16;
  float out;
  memcpy(&out, &word, sizeof(out));
  return out;
}

/// binary16 by bits, for the host.
inline float half_bits_to_float(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 31u, mantissa = bits & 0x3ffu;
  if (exponent == 0) {
    const float small = std::ldexp(static_cast<float>(mantissa), -24);
    return sign != 0 ? -small : small;
  }
  const uint32_t word = sign | (mantissa << 13) |
      (exponent == 31 ? 0x7f800000u : (exponent + 112) << 23);
  float out;
  std::memcpy(&out, &word, sizeof(out));
  return out;
}
inline uint16_t float_to_half_bits(float value) {
  uint32_t word;
  std::memcpy(&word, &value, sizeof(word));
  const uint16_t sign = static_cast<uint16_t>((word >> 16) & 0x8000u);
  word &= 0x7fffffffu;
  if (word > 0x7f800000u)
    return static_cast<uint16_t>(sign | 0x7e00u);
  if (word >= 0x477ff000u)  // rounds beyond 65504
    return static_cast<uint16_t>(sign | 0x7c00u);
  if (word < 0x38800000u)  // below 2^-14: steps of 2^-24
    return static_cast<uint16_t>(
        sign |
        static_cast<uint16_t>(std::nearbyint(std::fabs(value) * 16777216.0f)));
  word += 0xfffu + ((word >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((word - 0x38000000u) >> 13));
}

SEQCONV_HD float widen(Float16 value) {
#ifdef __CUDA_ARCH__
  return __half2float(__ushort_as_half(value.bits));
#else
  return half_bits_to_float(value.bits);
#endif
}

/// Rounds to nearest, ties to even.
template <class S>
struct Narrow;
template <>
struct Narrow<float> {
  static SEQCONV_HD float from(float value) { return value; }
};
template <>
struct Narrow<double> {
  static SEQCONV_HD double from(double value) { return value; }
};
template <>
struct Narrow<BFloat16> {
  static SEQCONV_HD BFloat16 from(float value) {
#ifdef __CUDA_ARCH__
    return {__bfloat16_as_ushort(__float2bfloat16_rn(value))};
#else
    return to_bfloat16(value);
#endif
  }
};
template <>
struct Narrow<Float16> {
  static SEQCONV_HD Float16 from(float value) {
#ifdef __CUDA_ARCH__
    return {__half_as_ushort(__float2half_rn(value))};
#else
    return {float_to_half_bits(value)};
#endif
  }
};

/// Two floats, rounded, as a word: the first lies lower.
template <class S>
SEQCONV_HD uint32_t narrow_pair(float low, float high) {
#ifdef __CUDA_ARCH__
  if constexpr (StorageOf<S>::kValue == Storage::kBFloat16) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const uint32_t*>(&pair);
  } else {
    const __half2 pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<const uint32_t*>(&pair);
  }
#else
  return Narrow<S>::from(low).bits |
      static_cast<uint32_t>(Narrow<S>::from(high).bits) << 16;
#endif
}

/// Elements of 16 bits in words, as registers hold them: the compiler takes an
/// array of them apart at every copy.
template <class S, int V>
struct PairedElements {
  uint32_t word[V / 2];

  class Element {
   public:
    SEQCONV_HD Element(uint32_t& word, int i)
        : word_(word), shift_(i % 2 * 16) {}
    SEQCONV_HD operator S() const {
      return {static_cast<uint16_t>(word_ >> shift_)};
    }
    SEQCONV_HD void operator=(S value) {
      word_ = (word_ & ~(0xffffu << shift_)) |
          static_cast<uint32_t>(value.bits) << shift_;
    }

   private:
    uint32_t& word_;
    int shift_;
  };
  SEQCONV_HD Element operator[](int i) { return {word[i / 2], i}; }
  SEQCONV_HD S operator[](int i) const {
    return {static_cast<uint16_t>(word[i / 2] >> (i % 2 * 16))};
  }
};

template <class S, int V, bool kPaired>
struct ElementsOf {
  using Type = S[V];
};
template <class S, int V>
struct ElementsOf<S, V, true> {
  using Type = PairedElements<S, V>;
};

/// V neighbouring elements, read or written at once where V > 1; then the
/// address is a multiple of V elements.
template <class S, int V>
struct alignas(sizeof(S) * V) Pack {
  static constexpr bool kPaired = sizeof(S) == 2 && V % 2 == 0;
  typename ElementsOf<S, V, kPaired>::Type v;
};
/// On the host: ends the program where the device would fault.
template <class Pack>
void check_aligned(const void* address) {
  if (reinterpret_cast<uintptr_t>(address) % alignof(Pack) != 0)
    std::abort();
}
template <class S, int V>
SEQCONV_HD Pack<S, V> load_pack(const S* from) {
#ifdef __CUDA_ARCH__
  if constexpr (sizeof(Pack<S, V>) == 16) {
    const ulonglong2 words = *reinterpret_cast<const ulonglong2*>(from);
    Pack<S, V> pack;
    memcpy(&pack, &words, sizeof(pack));
    return pack;
  } else {
    return *reinterpret_cast<const Pack<S, V>*>(from);
  }
#else
  check_aligned<Pack<S, V>>(from);
  Pack<S, V> pack;
  memcpy(static_cast<void*>(&pack), from, sizeof(pack));
  return pack;
#endif
}
template <class S, int V>
SEQCONV_HD void store_pack(S* to, const Pack<S, V>& pack) {
#ifdef __CUDA_ARCH__
  if constexpr (sizeof(Pack<S, V>) == 16) {
    ulonglong2 words;  // else it may be taken apart into four stores
    memcpy(&words, &pack, sizeof(words));
    *reinterpret_cast<ulonglong2*>(to) = words;
  } else {
    *reinterpret_cast<Pack<S, V>*>(to) = pack;
  }
#else
  check_aligned<Pack<S, V>>(to);
  memcpy(static_cast<void*>(to), &pack, sizeof(pack));
#endif
}
template <int V, class S, class A>
SEQCONV_HD void widen_pack(const Pack<S, V>& pack, A (&to)[V]) {
  if constexpr (std::is_same_v<S, BFloat16> && Pack<S, V>::kPaired) {
    // By words: an instruction for an element, where the upper half of one
    // would take two.
    SEQCONV_UNROLL
    for (int v = 0; v < V; v += 2) {
      const uint32_t word = pack.v.word[v / 2];
      const uint32_t low = word << 16, high = word & 0xffff0000u;
      memcpy(&to[v], &low, sizeof(low));
      memcpy(&to[v + 1], &high, sizeof(high));
    }
  } else {
    SEQCONV_UNROLL
    for (int v = 0; v < V; ++v)
      to[v] = widen(pack.v[v]);
  }
}
/// Elements of a pack of at most 16 bytes, of V neighbours.
template <class S, int V>
inline constexpr int kPackOf = min<int>(V, 16 / sizeof(S));

/// V neighbours, in packs of at most 16 bytes, which is their alignment.
template <int V, class S, class A>
SEQCONV_HD void load_wide(const S* from, A (&to)[V]) {
  constexpr int N = kPackOf<S, V>;
  SEQCONV_UNROLL
  for (int v = 0; v < V; v += N) {
    A part[N];
    widen_pack<N>(load_pack<S, N>(from + v), part);
    SEQCONV_UNROLL
    for (int i = 0; i < N; ++i)
      to[v + i] = part[i];
  }
}
/// Row r of a tensor whose rows are so many bytes apart: one instruction.
template <class S>
SEQCONV_HD S* row_at(S* rows, int r, int row_bytes) {
  using Byte = std::conditional_t<std::is_const_v<S>, const char, char>;
  return reinterpret_cast<S*>(
      reinterpret_cast<Byte*>(rows) + static_cast<int64_t>(r) * row_bytes);
}
template <int V, class S, class A>
SEQCONV_HD void store_narrow(S* to, const A (&from)[V]) {
  constexpr int N = kPackOf<S, V>;
  SEQCONV_UNROLL
  for (int v = 0; v < V; v += N) {
    Pack<S, N> pack;
    if constexpr (Pack<S, N>::kPaired) {
      SEQCONV_UNROLL
      for (int i = 0; i < N; i += 2)
        pack.v.word[i / 2] = narrow_pair<S>(from[v + i], from[v + i + 1]);
    } else {
      SEQCONV_UNROLL
      for (int i = 0; i < N; ++i)
        pack.v[i] = Narrow<S>::from(from[v + i]);
    }
    store_pack<S, N>(to + v, pack);
  }
}

/// f(R{}) for the type of what stands beside tensors of S: S, or float beside
/// 16 bits. For loops over it; load_stored chooses at every element.
template <class S, class F>
SEQCONV_DEVICE void with_storage(Storage storage, const F& f) {
  if constexpr (sizeof(S) == 2) {
    if (storage == Storage::kFloat)
      return f(float{});
  }
  f(S{});
}

/// Element i of an array whose type is known at run time only.
template <class A>
SEQCONV_HD A load_stored(const void* data, Storage storage, int64_t i) {
  switch (storage) {
    case Storage::kFloat:
      return static_cast<A>(static_cast<const float*>(data)[i]);
    case Storage::kDouble:
      return static_cast<A>(static_cast<const double*>(data)[i]);
    case Storage::kBFloat16:
      return widen(static_cast<const BFloat16*>(data)[i]);
    case Storage::kFloat16:
      return widen(static_cast<const Float16*>(data)[i]);
  }
  return A(0);
}
template <class A>
SEQCONV_HD void store_stored(void* data, Storage storage, int64_t i, A value) {
  switch (storage) {
    case Storage::kFloat:
      static_cast<float*>(data)[i] = static_cast<float>(value);
      return;
    case Storage::kDouble:
      static_cast<double*>(data)[i] = static_cast<double>(value);
      return;
    case Storage::kBFloat16:
      static_cast<BFloat16*>(data)[i] =
          Narrow<BFloat16>::from(static_cast<float>(value));
      return;
    case Storage::kFloat16:
      static_cast<Float16*>(data)[i] =
          Narrow<Float16>::from(static_cast<float>(value));
      return;
  }
}

/// Real rows of sequence b: its length, clamped to what is there.
SEQCONV_HD int64_t
valid_steps(const int64_t* lengths, int64_t b, int64_t steps) {
  return lengths == nullptr ? steps : clamped<int64_t>(lengths[b], 0, steps);
}

}  // namespace seqconv::kernels::cuda
