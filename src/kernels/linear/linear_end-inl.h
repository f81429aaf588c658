#if defined(SEQCONV_KERNELS_LINEAR_END_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_LINEAR_END_INL_H
#undef SEQCONV_KERNELS_LINEAR_END_INL_H
#else
#define SEQCONV_KERNELS_LINEAR_END_INL_H
#endif

#include "kernels/common/exp-inl.h"
#include "kernels/linear/linear_kernels.h"
#include "kernels/linear/linear_products-inl.h"

/// What linear maps end with: sums become rows of y.
HWY_BEFORE_NAMESPACE();
namespace seqconv::internal::kernels::HWY_NAMESPACE {

/// Vectors and outputs of a panel.
inline constexpr int kPanelVectors = 2;
inline constexpr int kPanel = kPanelVectors * kLanes<float>;

/// From a row of sums to the next: [rows, kPanelGroup * kPanel].
inline constexpr int64_t kSumStride = kPanelGroup * kPanel;

/// 1 / (1 + e^-z), in place, to four units of the last place; 0 where it is
/// below 2^-125. NaN stays NaN.
template <int N>
HWY_INLINE void sigmoids(Vec<float> (&z)[N]) {
  const Tag<float> d;
  // Below it e^-|z| is no normal number.
  const auto lowest = hn::Set(d, -87.0f), one = hn::Set(d, 1.0f);
  Vec<float> e[N];
#pragma GCC unroll 4
  for (int i = 0; i < N; ++i)
    e[i] = hn::Neg(hn::Abs(z[i]));
  exps_of_moderate<float>(e);
#pragma GCC unroll 4
  for (int i = 0; i < N; ++i) {
    const auto size = hn::Neg(hn::Abs(z[i]));
    e[i] = hn::IfThenZeroElse(hn::Lt(size, lowest), e[i]);
    const auto part = hn::IfThenElse(hn::Lt(z[i], hn::Zero(d)), e[i], one);
    const auto out = hn::Div(part, hn::Add(one, e[i]));
    z[i] = hn::IfThenElse(hn::IsNaN(z[i]), z[i], out);
  }
}

/// A panel's vectors of a row, in order: what is not there is never touched.
using PanelRow = Vec<float>[kPanelVectors];

/// What stands beside the outputs of a panel from the n-th on.
struct PanelSides {
  const float* bias;
  const float* scales;
  const int32_t* compensations;

  PanelSides(const OutputSides& sides, int64_t n)
      : bias(at(sides.bias, n)),
        scales(at(sides.scales, n)),
        compensations(at(sides.compensations, n)) {}

 private:
  template <class T>
  static const T* at(const T* p, int64_t n) {
    return p == nullptr ? p : p + n;
  }
};

HWY_INLINE Vec<float> to_numbers(
    Vec<float> sum,
    float /*row_scale*/,
    const PanelSides& /*sides*/,
    int64_t /*n*/,
    int64_t /*count*/) {
  return sum;
}
/// Sums of int8 of a row whose scale is `row_scale`.
HWY_INLINE Vec<float> to_numbers(
    Vec<int32_t> sum, float row_scale, const PanelSides& sides, int64_t n, int64_t count) {
  const Tag<float> d;
  const auto compensation = hn::BitCast(
      Tag<int32_t>(),
      load_some<float>(reinterpret_cast<const float*>(sides.compensations) + n, count));
  const auto scale = hn::Mul(hn::Set(d, row_scale), load_some<float>(sides.scales + n, count));
  return hn::Mul(hn::ConvertTo(d, hn::Sub(sum, compensation)), scale);
}

/// Sums of a row, of `count` outputs, as numbers with their bias.
template <class Sum>
HWY_INLINE void load_sums(
    const Sum* sums, float row_scale, const PanelSides& sides, int64_t count, PanelRow& z) {
  constexpr int L = kLanes<float>;
#pragma GCC unroll 2
  for (int v = 0; v < kPanelVectors; ++v) {
    const int64_t n = v * L;
    if (count <= n) {
      z[v] = hn::Zero(Tag<float>());
      continue;
    }
    z[v] = to_numbers(hn::Load(Tag<Sum>(), sums + n), row_scale, sides, n, count - n);
    if (sides.bias != nullptr)
      z[v] = hn::Add(z[v], load_some<float>(sides.bias + n, count - n));
  }
}

template <LinearEnd kEnd>
HWY_INLINE void end_sums(PanelRow& z, PanelRow& gates) {
  const Tag<float> d;
  if constexpr (kEnd == LinearEnd::kSwish || kEnd == LinearEnd::kGlu)
    sigmoids(gates);
#pragma GCC unroll 2
  for (int v = 0; v < kPanelVectors; ++v) {
    if constexpr (kEnd == LinearEnd::kRelu)
      z[v] = hn::IfThenZeroElse(hn::Lt(z[v], hn::Zero(d)), z[v]);
    else if constexpr (kEnd != LinearEnd::kNone)
      z[v] = hn::Mul(z[v], gates[v]);
  }
}

/// Sums -> rows of y from `row` on.
template <LinearEnd kEnd, class Sum>
void end_rows(const LinearBlock& block, int64_t row, int64_t rows, const Sum* sums) {
  constexpr int L = kLanes<float>;
  constexpr int kStep = kEnd == LinearEnd::kGlu ? 2 : 1;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t n = 0; n < block.outputs; n += kPanel) {
      const Sum* const panel = sums + r * kSumStride + kStep * n;
      const float row_scale = block.row_scales == nullptr ? 1 : block.row_scales[row + r];
      const int64_t count = block.outputs - n;
      PanelRow z, gates;
      load_sums(panel, row_scale, {block.sides, n}, count, z);
      if constexpr (kEnd == LinearEnd::kGlu)
        load_sums(panel + kPanel, row_scale, {block.gate_sides, n}, count, gates);
      else
        std::copy(z, z + kPanelVectors, gates);
      end_sums<kEnd>(z, gates);
#pragma GCC unroll 2
      for (int v = 0; v < kPanelVectors; ++v) {
        if (v * L >= count)
          break;
        const int64_t c = n + v * L;
        if (block.residual != nullptr) {
          const float* const residual = block.residual + (row + r) * block.residual_stride + c;
          z[v] = hn::Add(load_some<float>(residual, count - v * L), z[v]);
        }
        store_some<float>(z[v], block.y + (row + r) * block.y_stride + c, count - v * L);
      }
    }
}

template <class Sum>
HWY_INLINE void end_block(const LinearBlock& block, int64_t row, int64_t rows, const Sum* sums) {
  switch (block.end) {
    case LinearEnd::kNone:
      return end_rows<LinearEnd::kNone>(block, row, rows, sums);
    case LinearEnd::kRelu:
      return end_rows<LinearEnd::kRelu>(block, row, rows, sums);
    case LinearEnd::kSwish:
      return end_rows<LinearEnd::kSwish>(block, row, rows, sums);
    case LinearEnd::kGlu:
      return end_rows<LinearEnd::kGlu>(block, row, rows, sums);
  }
}

}  // namespace seqconv::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
