#pragma once

#include "kernels/cuda/block.h"
#include "seqconv/base/random.h"
#include "seqconv/kernels/cuda/conv.h"

/// From logits to taps and back: the normalisations of normalize-inl.h of
/// the CPU, element by element. conv_rows.h has the loops.
namespace seqconv::kernels::cuda {

/// The logits of a call, where element e of [H, K] or [B, T, H, K] is also
/// number e for DropConnect.
struct TapSource {
  Logits logits;
  int64_t batch_stride = 0;  ///< elements; 0 where all positions share logits
  int step_stride = 0;
  int kernel_size = 1;
  int lane_bits = 0;  ///< 2^so many threads copy a row
  int part_bits = 0;  ///< 2^so many threads share a row, neighbours in a warp
  int padding_left = 0;
  Normalization normalization = Normalization::kSoftmax;
  bool renormalize_edges = false;
  double scale = 1;  ///< of kept taps
  uint32_t threshold = 0;
  const int64_t* seed = nullptr;
  const uint8_t* mask = nullptr;

  SEQCONV_HD int64_t row(int64_t b, int64_t t, int64_t h) const {
    return b * batch_stride + t * step_stride + h * kernel_size;
  }
};

/// One row of logits: where it begins, and which of its taps count (the others
/// are zero). Without any, the position is not real.
struct TapRow {
  int64_t base = 0;
  int begin = 0;
  int end = 0;
};

/// The row of logits at element `base`, for position t of `valid`.
SEQCONV_HD TapRow
tap_row(const TapSource& source, int64_t base, int64_t t, int64_t valid) {
  if (t < 0 || t >= valid)
    return {0, 0, 0};
  const int64_t K = source.kernel_size, P = source.padding_left;
  if (!source.renormalize_edges)
    return {base, 0, source.kernel_size};
  return {
      base,
      static_cast<int>(max<int64_t>(0, P - t)),
      static_cast<int>(min<int64_t>(K, valid - t + P))};
}

/// softmax: the maximum and 1 / sum of exp; norms: the norm and 1 / (it + e);
/// else 0 and 1.
template <class A>
struct alignas(2 * sizeof(A)) RowStats {
  A shift;
  A scale;
};

/// Elements that a thread takes at once.
inline constexpr int kTapGroup = 4;
SEQCONV_HD constexpr int tap_groups(int kernel_size) {
  return chunks_of(kernel_size, kTapGroup);
}
/// Elements from one row of logits to the next: an odd number of groups, so
/// that neighbouring rows begin in different banks.
SEQCONV_HD constexpr int logit_pitch(int kernel_size) {
  return (tap_groups(kernel_size) | 1) * kTapGroup;
}
/// The smallest n with 2^n >= count, at most `most_bits`.
inline int bits_for(int count, int max_bits) {
  int bits = 0;
  while (bits < max_bits && 1 << bits < count)
    ++bits;
  return bits;
}

SEQCONV_HD bool has_norm(Normalization n) {
  return n == Normalization::kL1 || n == Normalization::kL2 ||
      n == Normalization::kAbsL1 || n == Normalization::kAbsL2;
}
SEQCONV_HD bool is_squared(Normalization n) {
  return n == Normalization::kL2 || n == Normalization::kAbsL2;
}
SEQCONV_HD bool is_absolute(Normalization n) {
  return n == Normalization::kAbsL1 || n == Normalization::kAbsL2;
}

template <class A>
SEQCONV_HD A sign_of(A value) {
  return static_cast<A>((value > 0) - (value < 0));
}

/// e^x for x that is not positive. The device's power of two is wrong by 2 ulp
/// and x / ln 2 by its rounding: together less than 2^-23 of 1, at any x.
SEQCONV_DEVICE double exp_of_negative(double x) {
  return std::exp(x);
}
SEQCONV_DEVICE float exp_of_negative(float x) {
#ifdef __CUDA_ARCH__
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x * 1.44269504f));
  return power;
#else
  return std::exp(x);
#endif
}

/// The tap of logit w but for the row's scale. Softmax has loops of its
/// own.
template <class A>
SEQCONV_DEVICE A tap_value(Normalization normalization, A w) {
  switch (normalization) {
    case Normalization::kNone:
    case Normalization::kSoftmax:
    case Normalization::kL1:
    case Normalization::kL2:
      return w;
    case Normalization::kSigmoid:
      return A(1) / (A(1) + std::exp(-w));
    case Normalization::kTanh:
      return std::tanh(w);
    case Normalization::kSquare:
      return w * w;
    case Normalization::kAbs:
    case Normalization::kAbsL1:
    case Normalization::kAbsL2:
      return std::abs(w);
  }
  return w;
}

/// Gradient of the logit w from the gradient `g` of its tap and the row's
/// sum `dot` of g times w, or |w|.
template <class A>
SEQCONV_DEVICE A logit_gradient(
    Normalization normalization,
    const RowStats<A>& stats,
    A w,
    A g,
    A dot) {
  switch (normalization) {
    case Normalization::kNone:
    case Normalization::kSoftmax:
      return g;
    case Normalization::kSigmoid: {
      const A tap = tap_value(normalization, w);
      return g * tap * (A(1) - tap);
    }
    case Normalization::kTanh: {
      const A tap = tap_value(normalization, w);
      return g * (A(1) - tap * tap);
    }
    case Normalization::kSquare:
      return g * A(2) * w;
    case Normalization::kAbs:
      return g * sign_of(w);
    default:
      break;
  }
  const A slope = is_squared(normalization)
      ? (stats.shift > 0 ? w / stats.shift : A(0))
      : sign_of(w);
  return (is_absolute(normalization) ? sign_of(w) : A(1)) * g * stats.scale -
      slope * dot * stats.scale * stats.scale;
}

}  // namespace seqconv::kernels::cuda
