#pragma once

// Highway is used for its headers alone, so that what is built from this needs
// no library of it: no assertions, and the processor is asked here.
#define HWY_IS_DEBUG_BUILD 0
// The loops are compiled once for each of these instruction sets; what is left
// out would be compiled for machines that one of the others serves as well.
// Included before Highway.
#ifdef SEQCONV_FEW_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3 | HWY_AVX3_DL)
#else
#define HWY_DISABLED_TARGETS (HWY_SSE4 | HWY_AVX3_DL)
#endif
