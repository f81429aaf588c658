#include "seqconv/kernels/cumulative_average.h"

#include <algorithm>

#include "kernels/multiversion.h"

namespace seqconv::kernels {
namespace {

constexpr int64_t kWide = 512;   // channels of a block that streams well
constexpr int64_t kNarrow = 64;  // ... of one where rows are too few to share
constexpr int64_t kEnoughBlocks = 16;
constexpr int64_t kGrain = 16384;  // inputs that are worth a thread's while

template <class S>
SEQCONV_INLINE double to_double(S value) {
  return static_cast<double>(widen(value));
}

template <class S>
SEQCONV_INLINE S rounded(double value) {
  return narrow<S>(static_cast<AccumulatorOf<S>>(value));
}

/// sums += x; y = sums * scale.
template <class S>
SEQCONV_MULTIVERSION void
add_then_scale(const S* x, double scale, double* sums, S* y, int64_t count) {
#pragma omp simd
  for (int64_t c = 0; c < count; ++c) {
    sums[c] += to_double(x[c]);
    y[c] = rounded<S>(sums[c] * scale);
  }
}

/// sums += x * scale; y = sums.
template <class S>
SEQCONV_MULTIVERSION void
scale_then_add(const S* x, double scale, double* sums, S* y, int64_t count) {
#pragma omp simd
  for (int64_t c = 0; c < count; ++c) {
    sums[c] += to_double(x[c]) * scale;
    y[c] = rounded<S>(sums[c]);
  }
}

double share(int64_t position) {
  return 1.0 / static_cast<double>(position + 1);
}

/// Calls body(b, first, count) for blocks of channels of every row. Channels do
/// not depend on each other: neither does the result on the blocks.
template <class Body>
void for_blocks(
    const AverageShape& shape,
    const ParallelFor& parallel_for,
    const Body& body) {
  const int64_t C = shape.channels;
  const int64_t wide = (C + kWide - 1) / kWide;
  const int64_t width = shape.batch * wide >= kEnoughBlocks ? kWide : kNarrow;
  const int64_t blocks = (C + width - 1) / width;
  const int64_t work = std::max<int64_t>(1, shape.steps * std::min(C, width));
  const int64_t grain = std::max<int64_t>(1, kGrain / work);
  parallel_for(shape.batch * blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % blocks * width;
      body(i / blocks, first, std::min(width, C - first));
    }
  });
}

int64_t length_of(const int64_t* lengths, int64_t b, int64_t steps) {
  return lengths == nullptr ? steps : lengths[b];
}

/// Zeros from `length` on.
template <class S>
void clear_padding(S* y, int64_t length, const AverageShape& shape, int64_t n) {
  for (int64_t t = length; t < shape.steps; ++t)
    std::fill_n(y + t * shape.channels, n, S{});
}

}  // namespace

template <class S>
void cumulative_average(
    const CumulativeAverage<S>& args,
    const ParallelFor& parallel_for) {
  const AverageShape& shape = args.shape;
  const int64_t C = shape.channels;
  for_blocks(shape, parallel_for, [&](int64_t b, int64_t first, int64_t count) {
    const int64_t start = b * shape.steps * C + first;
    const S* const x = args.x + start;
    S* const y = args.y + start;
    double sums[kWide] = {};
    const int64_t length = length_of(args.lengths, b, shape.steps);
    for (int64_t t = 0; t < length; ++t)
      add_then_scale(x + t * C, share(t), sums, y + t * C, count);
    clear_padding(y, length, shape, count);
  });
}

template <class S>
void cumulative_average_backward(
    const CumulativeAverage<S>& args,
    const ParallelFor& parallel_for) {
  const AverageShape& shape = args.shape;
  const int64_t C = shape.channels;
  for_blocks(shape, parallel_for, [&](int64_t b, int64_t first, int64_t count) {
    const int64_t start = b * shape.steps * C + first;
    const S* const x = args.x + start;
    S* const y = args.y + start;
    double sums[kWide] = {};
    const int64_t length = length_of(args.lengths, b, shape.steps);
    for (int64_t t = length - 1; t >= 0; --t)
      scale_then_add(x + t * C, share(t), sums, y + t * C, count);
    clear_padding(y, length, shape, count);
  });
}

template <class S>
void cumulative_average_step(
    const CumulativeAverageStep<S>& args,
    const ParallelFor& parallel_for) {
  const AverageShape& shape = args.shape;
  const int64_t C = shape.channels;
  for_blocks(shape, parallel_for, [&](int64_t n, int64_t first, int64_t count) {
    const int64_t start = n * shape.steps * C + first;
    for (int64_t t = 0; t < shape.steps; ++t)
      add_then_scale(
          args.x + start + t * C,
          share(args.position + t),
          args.sums + n * C + first,
          args.y + start + t * C,
          count);
  });
}

#define SEQCONV_INSTANTIATE(S)                  \
  template void cumulative_average<S>(          \
      const CumulativeAverage<S>&,              \
      const ParallelFor&);                      \
  template void cumulative_average_backward<S>( \
      const CumulativeAverage<S>&,              \
      const ParallelFor&);                      \
  template void cumulative_average_step<S>(     \
      const CumulativeAverageStep<S>&,          \
      const ParallelFor&);
SEQCONV_INSTANTIATE(float)
SEQCONV_INSTANTIATE(double)
SEQCONV_INSTANTIATE(BFloat16)
#undef SEQCONV_INSTANTIATE

}  // namespace seqconv::kernels
