#pragma once

#include "seqconv/kernels/isa.h"

// SEQCONV_CHOOSE(isa, Class, table()) returns what a static function of a class
// of the instruction set's namespace returns. The set is chosen by name so that
// tests can ask for any of them.
#if HWY_TARGETS & HWY_AVX3
#define SEQCONV_AVX512_TABLE(CLASS, ...) \
  case Isa::kAvx512:                     \
    return N_AVX3::CLASS::__VA_ARGS__
#else
#define SEQCONV_AVX512_TABLE(CLASS, ...) \
  case Isa::kAvx512:                     \
    break
#endif
#if HWY_TARGETS & HWY_AVX2
#define SEQCONV_AVX2_TABLE(CLASS, ...) \
  case Isa::kAvx2:                     \
    return N_AVX2::CLASS::__VA_ARGS__
#else
#define SEQCONV_AVX2_TABLE(CLASS, ...) \
  case Isa::kAvx2:                     \
    break
#endif
#if HWY_TARGETS & HWY_SSSE3
#define SEQCONV_SSSE3_TABLE(CLASS, ...) \
  if (__builtin_cpu_supports("ssse3"))  \
  return N_SSSE3::CLASS::__VA_ARGS__
#else
#define SEQCONV_SSSE3_TABLE(CLASS, ...)
#endif
#define SEQCONV_CHOOSE(isa, CLASS, ...)       \
  switch (isa) {                              \
    SEQCONV_AVX512_TABLE(CLASS, __VA_ARGS__); \
    SEQCONV_AVX2_TABLE(CLASS, __VA_ARGS__);   \
    case Isa::kBaseline:                      \
      break;                                  \
  }                                           \
  SEQCONV_SSSE3_TABLE(CLASS, __VA_ARGS__);    \
  return HWY_STATIC_DISPATCH(CLASS)::__VA_ARGS__
