#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace seqconv::internal::kernels {

/// The upper half of a float32, the way tensors store it. Arithmetic is never
/// done in this type: kernels widen on load and round on store.
struct BFloat16 {
  uint16_t bits = 0;
};

inline float to_float(BFloat16 value) {
  const uint32_t word = static_cast<uint32_t>(value.bits) << 16;
  float out;
  std::memcpy(&out, &word, sizeof(out));
  return out;
}

/// Rounds to nearest, ties to even; every NaN stays a NaN.
inline BFloat16 to_bfloat16(float value) {
  uint32_t word;
  std::memcpy(&word, &value, sizeof(word));
  if (value != value)
    return BFloat16{static_cast<uint16_t>((word >> 16) | 0x40u)};
  return BFloat16{static_cast<uint16_t>((word + 0x7fffu + ((word >> 16) & 1u)) >> 16)};
}

/// The type that sums of values stored as S are kept in.
template <class S>
struct Accumulator {
  using Type = S;
};
template <>
struct Accumulator<BFloat16> {
  using Type = float;
};
template <class S>
using AccumulatorOf = typename Accumulator<S>::Type;

/// A stored value in the type that is computed in; exact.
template <class S>
inline AccumulatorOf<S> widen(S value) {
  if constexpr (std::is_same_v<S, BFloat16>)
    return to_float(value);
  else
    return value;
}

/// A computed value in the type that is stored, rounded as to_bfloat16 does.
template <class S>
inline S narrow(AccumulatorOf<S> value) {
  if constexpr (std::is_same_v<S, BFloat16>)
    return to_bfloat16(value);
  else
    return value;
}

}  // namespace seqconv::internal::kernels
