#pragma once

/// Inner loops are written plainly and compiled three times; the loader picks
/// the version that the processor can run. Helpers that such loops call must be
/// SEQCONV_INLINE, because a function that stays outside is compiled once, for
/// the oldest processor. Sums over a loop say `#pragma omp simd reduction`:
/// that alone lets the compiler reorder them, without -ffast-math.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define SEQCONV_MULTIVERSION \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define SEQCONV_MULTIVERSION
#endif

#define SEQCONV_INLINE inline __attribute__((always_inline))
