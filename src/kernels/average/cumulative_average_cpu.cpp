#include "seqconv/kernels/cumulative_average.h"

#include <algorithm>

#include "kernels/fused/elementwise_ops.h"

namespace seqconv::kernels {
namespace {

constexpr int64_t kWide = 512;   // channels of a block that streams well
constexpr int64_t kNarrow = 64;  // ... of one where rows are too few to share
constexpr int64_t kEnoughBlocks = 16;
constexpr int64_t kGrain = 16384;  // inputs that are worth a thread's while

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

template <class S>
void average(
    const CumulativeAverage<S>& args,
    AddAverageRows<S> add_rows,
    const ParallelFor& parallel_for) {
  const AverageShape& shape = args.shape;
  const int64_t C = shape.channels;
  for_blocks(shape, parallel_for, [&](int64_t b, int64_t first, int64_t count) {
    const int64_t start = b * shape.steps * C + first;
    const int64_t length =
        args.lengths == nullptr ? shape.steps : args.lengths[b];
    alignas(64) double sums[kWide] = {};
    add_rows(
        {.x = args.x + start,
         .y = args.y + start,
         .stride = C,
         .rows = length,
         .channels = count},
        sums);
    for (int64_t t = length; t < shape.steps; ++t)
      std::fill_n(args.y + start + t * C, count, S{});
  });
}

}  // namespace

template <class S>
void cumulative_average(
    const CumulativeAverage<S>& args,
    const ParallelFor& parallel_for) {
  average(args, average_ops<S>(best_isa()).forward, parallel_for);
}

template <class S>
void cumulative_average_backward(
    const CumulativeAverage<S>& args,
    const ParallelFor& parallel_for) {
  average(args, average_ops<S>(best_isa()).backward, parallel_for);
}

template <class S>
void cumulative_average_step(
    const CumulativeAverageStep<S>& args,
    const ParallelFor& parallel_for) {
  const AverageShape& shape = args.shape;
  const int64_t C = shape.channels;
  const AddAverageRows<S> add_rows = average_ops<S>(best_isa()).forward;
  for_blocks(shape, parallel_for, [&](int64_t n, int64_t first, int64_t count) {
    const int64_t start = n * shape.steps * C + first;
    add_rows(
        {.x = args.x + start,
         .y = args.y + start,
         .stride = C,
         .rows = shape.steps,
         .channels = count,
         .position = args.position},
        args.sums + n * C + first);
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
