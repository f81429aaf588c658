// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv_kernels.cpp"
#include "kernels/each_target.h"
// clang-format on
#include "kernels/conv_kernels.h"
#include "kernels/channels-inl.h"
#include "kernels/rows-inl.h"
#include "kernels/shared_products-inl.h"
#include "kernels/softmax-inl.h"
#include "kernels/softmax_backward-inl.h"
#include "kernels/stage-inl.h"
#include "kernels/tap_products-inl.h"

HWY_BEFORE_NAMESPACE();
namespace seqconv::kernels::HWY_NAMESPACE {

// In convolve_*.cpp: each type takes as long to compile as all of this file.
template <class S, class A>
void convolve(const ConvTile<S, A>& tile);
extern template void convolve(const ConvTile<float, float>& tile);
extern template void convolve(const ConvTile<double, double>& tile);
extern template void convolve(const ConvTile<BFloat16, float>& tile);

namespace {

/// The table of this instruction set.
struct Tables {
  template <class S, class A>
  static const ConvKernels<S, A>& rows() {
    static constexpr ConvKernels<S, A> kTable = {
        .convolve = convolve<S, A>,
        .stage = stage<S, A>,
        .tap_products = tap_products<S, A>,
        .shared_tap_products = shared_tap_products<S, A>,
        .lane_tap_products = lane_tap_products<S, A>,
        .weighted_sum = weighted_sum<S, A>,
        .column_sums = column_sums<S, A>,
        .softmax = softmax_tile<S, A>,
        .softmax_backward = softmax_backward<S, A>,
        .widen_taps = widen_taps<S, A>,
        .narrow_taps = narrow_taps<S, A>,
        .narrow = narrow<S, A>};
    return kTable;
  }
};

}  // namespace
}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace seqconv::kernels {
namespace {

#if defined(__x86_64__)
bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}
[[maybe_unused]] bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") &&
      __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

}  // namespace

std::vector<Isa> supported_isas() {
  std::vector<Isa> isas = {Isa::kBaseline};
#if HWY_TARGETS & HWY_AVX2
  if (has_avx2())
    isas.push_back(Isa::kAvx2);
#endif
#if HWY_TARGETS & HWY_AVX3
  if (has_avx512())
    isas.push_back(Isa::kAvx512);
#endif
  return isas;
}

Isa best_isa() {
  static const Isa best = supported_isas().back();
  return best;
}

template <class S, class A>
const ConvKernels<S, A>& conv_kernels(Isa isa) {
  SEQCONV_CHOOSE(isa, rows<S, A>());
}

template const ConvKernels<float, float>& conv_kernels(Isa isa);
template const ConvKernels<double, double>& conv_kernels(Isa isa);
template const ConvKernels<BFloat16, float>& conv_kernels(Isa isa);

}  // namespace seqconv::kernels
#endif
