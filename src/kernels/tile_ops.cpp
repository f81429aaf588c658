// Highway is used for its headers alone, so that what is built from this needs
// no library of it: no assertions, and the processor is asked here.
#define HWY_IS_DEBUG_BUILD 0
// Compiled once for each of these instruction sets; what is left out would be
// compiled for machines that one of the others serves as well.
#ifdef SEQCONV_FEW_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3 | HWY_AVX3_DL)
#else
#define HWY_DISABLED_TARGETS (HWY_SSE4 | HWY_AVX3_DL)
#endif
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/tile_ops.cpp"
#include <hwy/foreach_target.h>
// clang-format on
#include "kernels/convolve-inl.h"
#include "kernels/rows-inl.h"
#include "kernels/talk_tile-inl.h"
#include "kernels/tap_products-inl.h"
#include "kernels/taps-inl.h"

HWY_BEFORE_NAMESPACE();
namespace seqconv::kernels::HWY_NAMESPACE {

/// The tables of this instruction set.
struct Tables {
  template <class S, class A>
  static const RowOps<S, A>& rows() {
    static constexpr RowOps<S, A> kTable = {
        .convolve = convolve<S, A>,
        .stage = stage<S, A>,
        .tap_products = tap_products<S, A>,
        .shared_tap_products = shared_tap_products<S, A>,
        .lane_tap_products = lane_tap_products<S, A>,
        .weighted_sum = weighted_sum<S, A>,
        .column_sums = column_sums<S, A>,
        .softmax = softmax_tile<S, A>,
        .widen = widen<S, A>,
        .narrow = narrow<S, A>};
    return kTable;
  }

  template <class A>
  static const TapOps<A>& taps() {
    static constexpr TapOps<A> kTable = {
        .exp = exp_all<A>,
        .softmax = softmax_any<A>,
        .inverse_sums = inverse_sums<A>,
        .softmax_backward = softmax_backward<A>,
        .multiply = multiply<A>};
    return kTable;
  }

  template <class S, class A>
  static const TalkOps<S, A>& talk() {
    static constexpr TalkOps<S, A> kTable = {
        .windows = talk_windows<A>,
        .forward = talk_forward_tile<S, A>,
        .input_gradient = talk_input_gradient<S, A>,
        .edge_products = talk_edge_products<S, A>};
    return kTable;
  }
};

}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace seqconv::kernels {
namespace {

#if defined(__x86_64__)
[[maybe_unused]] bool has_ssse3() {
  return __builtin_cpu_supports("ssse3");
}
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

// The table of an instruction set, chosen by name so that tests can ask for
// any of them.
#if HWY_TARGETS & HWY_AVX3
#define SEQCONV_AVX512_TABLE(...) \
  case Isa::kAvx512:              \
    return N_AVX3::Tables::__VA_ARGS__
#else
#define SEQCONV_AVX512_TABLE(...) \
  case Isa::kAvx512:              \
    break
#endif
#if HWY_TARGETS & HWY_AVX2
#define SEQCONV_AVX2_TABLE(...) \
  case Isa::kAvx2:              \
    return N_AVX2::Tables::__VA_ARGS__
#else
#define SEQCONV_AVX2_TABLE(...) \
  case Isa::kAvx2:              \
    break
#endif
#if HWY_TARGETS & HWY_SSSE3
#define SEQCONV_SSSE3_TABLE(...) \
  if (has_ssse3())               \
  return N_SSSE3::Tables::__VA_ARGS__
#else
#define SEQCONV_SSSE3_TABLE(...)
#endif
#define SEQCONV_CHOOSE(isa, ...)       \
  switch (isa) {                       \
    SEQCONV_AVX512_TABLE(__VA_ARGS__); \
    SEQCONV_AVX2_TABLE(__VA_ARGS__);   \
    case Isa::kBaseline:               \
      break;                           \
  }                                    \
  SEQCONV_SSSE3_TABLE(__VA_ARGS__);    \
  return HWY_STATIC_DISPATCH(Tables)::__VA_ARGS__

template <class S, class A>
const RowOps<S, A>& row_ops(Isa isa) {
  SEQCONV_CHOOSE(isa, rows<S, A>());
}

template <class A>
const TapOps<A>& tap_ops(Isa isa) {
  SEQCONV_CHOOSE(isa, taps<A>());
}

template <class S, class A>
const TalkOps<S, A>& talk_ops(Isa isa) {
  SEQCONV_CHOOSE(isa, talk<S, A>());
}

#define SEQCONV_INSTANTIATE(S, A)                \
  template const RowOps<S, A>& row_ops(Isa isa); \
  template const TalkOps<S, A>& talk_ops(Isa isa);
SEQCONV_INSTANTIATE(float, float)
SEQCONV_INSTANTIATE(double, double)
SEQCONV_INSTANTIATE(BFloat16, float)
template const TapOps<float>& tap_ops(Isa isa);
template const TapOps<double>& tap_ops(Isa isa);

}  // namespace seqconv::kernels
#endif
