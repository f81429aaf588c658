#if defined(SEQCONV_KERNELS_LINEAR_PRODUCTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_LINEAR_PRODUCTS_INL_H
#undef SEQCONV_KERNELS_LINEAR_PRODUCTS_INL_H
#else
#define SEQCONV_KERNELS_LINEAR_PRODUCTS_INL_H
#endif

#include <cmath>

#include "kernels/common/vectors-inl.h"
#include "kernels/linear/linear_kernels.h"

/// What packed_linear() multiplies, one struct for each kind of numbers.
///
/// Weights and inputs come in groups of kGroup neighbours along K, whose
/// products go into one sum: a vector of weights holds the groups of as many
/// outputs as it has sums, a vector of inputs one group everywhere. prepare()
/// brings a row of floats into the form of inputs, writing whole vectors with
/// zeros behind the last, and returns its scale; kinds whose
/// inputs are floats have none.
HWY_BEFORE_NAMESPACE();
namespace seqconv::internal::kernels::HWY_NAMESPACE {

/// Whether this target has instructions for sums of products of 8 bits, and of
/// bfloat16. They are written as such, since processors of one Highway target
/// have them or not: the caller asks.
#undef SEQCONV_DOT_INT8
#undef SEQCONV_DOT_BFLOAT16
#if HWY_TARGET == HWY_AVX3
#define SEQCONV_DOT_INT8 "vpdpbusd"
#define SEQCONV_DOT_BFLOAT16 "vdpbf16ps"
#elif HWY_TARGET == HWY_AVX2
#define SEQCONV_DOT_INT8 "%{vex%} vpdpbusd"
#endif

struct Float32Products {
  using Input = float;
  using Weight = float;
  using Sum = float;
  static constexpr int kGroup = 1;

  static HWY_INLINE Vec<float> inputs(const Input* x) { return hn::Set(Tag<float>(), *x); }
  static HWY_INLINE Vec<float> weights(const Weight* w) { return hn::Load(Tag<float>(), w); }
  static HWY_INLINE Vec<float> add(Vec<float> weights, Vec<float> inputs, Vec<float> sum) {
    return hn::MulAdd(weights, inputs, sum);
  }
};

/// Weights of bfloat16, widened as they come.
struct Bfloat16Products : Float32Products {
  using Weight = BFloat16;

  static HWY_INLINE Vec<float> weights(const Weight* w) { return load_all(Tag<float>(), w); }
};

/// Four bytes that stand in every place of a vector.
template <class T>
HWY_INLINE Vec<T> repeat_group(const void* group) {
  int32_t bits;
  std::memcpy(&bits, group, sizeof(bits));
  return hn::BitCast(Tag<T>(), hn::Set(Tag<int32_t>(), bits));
}

#ifdef SEQCONV_DOT_BFLOAT16
/// Both sides rounded to bfloat16, pairs multiplied by the processor.
struct Bfloat16DotProducts {
  using Input = BFloat16;
  using Weight = BFloat16;
  using Sum = float;
  static constexpr int kGroup = 2;

  static HWY_INLINE Vec<uint16_t> inputs(const Input* x) { return repeat_group<uint16_t>(x); }
  static HWY_INLINE Vec<uint16_t> weights(const Weight* w) {
    return hn::Load(Tag<uint16_t>(), reinterpret_cast<const uint16_t*>(w));
  }
  static HWY_INLINE Vec<float> add(Vec<uint16_t> weights, Vec<uint16_t> inputs, Vec<float> sum) {
    asm(SEQCONV_DOT_BFLOAT16 " %2, %1, %0" : "+v"(sum.raw) : "v"(inputs.raw), "v"(weights.raw));
    return sum;
  }
  static float prepare(const float* x, int64_t K, Input* row) {
    for (int64_t k = 0; k < K; k += kLanes<float>)
      store_narrow(load_some<float>(x + k, K - k), row + k);
    return 1;
  }
};
#endif

/// Quantizes a row x [K] by Int8Scale.
class RowScale {
 public:
  HWY_INLINE RowScale(const float* x, int64_t K) : by_(largest(x, K)) {}

  float scale() const { return by_.scale; }
  /// A vector from x on, zeros behind the first `count`.
  HWY_INLINE Vec<int32_t> round(const float* x, int64_t count) const {
    const auto inverse = hn::Set(Tag<float>(), by_.inverse);
    return hn::NearestInt(hn::Mul(load_some<float>(x, count), inverse));
  }

 private:
  static HWY_INLINE float largest(const float* x, int64_t K) {
    // Bits of sizes are in their order, and those of NaN behind them all.
    const Tag<float> d;
    const Tag<int32_t> di;
    constexpr int L = kLanes<float>;
    const auto bits = [&](Vec<float> v) HWY_ATTR { return hn::BitCast(di, hn::Abs(v)); };
    auto largest = hn::Zero(di), other = largest;
    int64_t k = 0;
    for (; k + 2 * L <= K; k += 2 * L) {
      largest = hn::Max(largest, bits(hn::LoadU(d, x + k)));
      other = hn::Max(other, bits(hn::LoadU(d, x + k + L)));
    }
    for (; k < K; k += L)
      other = hn::Max(other, bits(load_some<float>(x + k, K - k)));
    return std::bit_cast<float>(hn::GetLane(hn::MaxOfLanes(di, hn::Max(largest, other))));
  }

  Int8Scale by_;
};

/// Quantizes x [K], each number more by `zero_point`, in whole vectors with zeros behind the
/// last. Returns its scale.
template <class Input>
HWY_INLINE float round_row(const float* x, int64_t K, int32_t zero_point, Input* row) {
  const Tag<int32_t> d;
  const hn::Rebind<Input, Tag<int32_t>> narrow;
  const RowScale by(x, K);
  for (int64_t k = 0; k < K; k += kLanes<float>) {
    const auto rounded = hn::Add(by.round(x + k, K - k), hn::Set(d, zero_point));
    if constexpr (sizeof(Input) == sizeof(int32_t))
      hn::StoreU(rounded, d, row + k);
    else
      hn::StoreU(hn::DemoteTo(narrow, rounded), narrow, row + k);
  }
  return by.scale();
}

#if HWY_TARGET == HWY_SSSE3 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
/// Weights and inputs of 8 bits, multiplied as 16: nothing saturates.
struct Int8Products {
  using Input = int16_t;
  using Weight = int8_t;
  using Sum = int32_t;
  static constexpr int kGroup = 2;

  static HWY_INLINE Vec<int16_t> inputs(const Input* x) { return repeat_group<int16_t>(x); }
  static HWY_INLINE Vec<int16_t> weights(const Weight* w) {
    const hn::Rebind<int8_t, Tag<int16_t>> half;
    return hn::PromoteTo(Tag<int16_t>(), hn::Load(half, w));
  }
  static HWY_INLINE Vec<int32_t> add(Vec<int16_t> weights, Vec<int16_t> inputs, Vec<int32_t> sum) {
    // On these targets a sum takes both products of a pair. g++ would add the
    // products of several pairs first, which have no registers.
    const Tag<int32_t> d;
    auto unused = hn::Zero(d);
    return in_register(hn::ReorderWidenMulAccumulate(d, weights, inputs, sum, unused));
  }
  static float prepare(const float* x, int64_t K, Input* row) { return round_row(x, K, 0, row); }
};
#else
/// Weights and inputs of 8 bits, multiplied as 32.
struct Int8Products {
  using Input = int32_t;
  using Weight = int8_t;
  using Sum = int32_t;
  static constexpr int kGroup = 1;

  static HWY_INLINE Vec<int32_t> inputs(const Input* x) { return hn::Set(Tag<int32_t>(), *x); }
  static HWY_INLINE Vec<int32_t> weights(const Weight* w) {
    const hn::Rebind<int8_t, Tag<int32_t>> quarter;
    return hn::PromoteTo(Tag<int32_t>(), hn::Load(quarter, w));
  }
  static HWY_INLINE Vec<int32_t> add(Vec<int32_t> weights, Vec<int32_t> inputs, Vec<int32_t> sum) {
    return hn::Add(sum, hn::Mul(weights, inputs));
  }
  static float prepare(const float* x, int64_t K, Input* row) { return round_row(x, K, 0, row); }
};
#endif

/// What inputs without a sign are more than they stand for.
inline constexpr int kInputOffset = 128;

#ifdef SEQCONV_DOT_INT8
/// The same sums by the processor's own product of 8 bits, whose inputs have no
/// sign: they are kInputOffset more, and so are sums, by that times their
/// weights'.
struct Int8DotProducts {
  using Input = uint8_t;
  using Weight = int8_t;
  using Sum = int32_t;
  static constexpr int kGroup = 4;

  static HWY_INLINE Vec<uint8_t> inputs(const Input* x) { return repeat_group<uint8_t>(x); }
  static HWY_INLINE Vec<int8_t> weights(const Weight* w) { return hn::Load(Tag<int8_t>(), w); }
  static HWY_INLINE Vec<int32_t> add(Vec<int8_t> weights, Vec<uint8_t> inputs, Vec<int32_t> sum) {
    asm(SEQCONV_DOT_INT8 " %2, %1, %0" : "+v"(sum.raw) : "v"(inputs.raw), "v"(weights.raw));
    return sum;
  }
  static float prepare(const float* x, int64_t K, Input* row) {
    return round_row(x, K, kInputOffset, row);
  }
};
#endif

}  // namespace seqconv::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
