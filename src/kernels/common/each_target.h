#pragma once

/// Compiles the including source, which has named itself by HWY_TARGET_INCLUDE,
/// once for each instruction set; SEQCONV_CHOOSE then picks among the results.
/// Loops between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE may be plain
/// ones: the compiler makes vector code of them for the set it is at. Helpers
/// that such loops call must be there too, because a function that stays
/// outside is compiled once, for the oldest processor. Sums over a loop say
/// `#pragma omp simd reduction`: that alone lets the compiler reorder them,
/// without -ffast-math.

// Highway is used for its headers alone, so that what is built from this needs
// no library of it: no assertions, and isa.h asks the processor.
#define HWY_IS_DEBUG_BUILD 0
// What is left out would be compiled for machines that one of the others serves
// as well. Vectors of SVE have no size at compile time, so that none can be an
// element of an array: blocks of sums are such arrays. NEON is on all arm64.
#ifdef SEQCONV_FEW_TARGETS
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#else
#define HWY_DISABLED_TARGETS \
  (HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#endif
#include <hwy/foreach_target.h>

#include "kernels/isa.h"

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
#define SEQCONV_SSSE3_TABLE(...)       \
  if (__builtin_cpu_supports("ssse3")) \
  return N_SSSE3::Tables::__VA_ARGS__
#else
#define SEQCONV_SSSE3_TABLE(...)
#endif
/// Returns what the static function `...` of `isa`'s struct Tables returns.
#define SEQCONV_CHOOSE(isa, ...)       \
  switch (isa) {                       \
    SEQCONV_AVX512_TABLE(__VA_ARGS__); \
    SEQCONV_AVX2_TABLE(__VA_ARGS__);   \
    case Isa::kBaseline:               \
      break;                           \
  }                                    \
  SEQCONV_SSSE3_TABLE(__VA_ARGS__);    \
  return HWY_STATIC_DISPATCH(Tables)::__VA_ARGS__
