#include "kernels/cumulative_average.h"

#include <algorithm>

#include "kernels/fused/elementwise_ops.h"

namespace seqconv::internal::kernels {
namespace {

constexpr int64_t kWide = 512;   // channels of a block that streams well
constexpr int64_t kNarrow = 64;  // ... of one where rows are too few to share
constexpr int64_t kEnoughBlocks = 16;
constexpr int64_t kGrain = 16384;  // inputs that are worth a thread's while

/// Runs add_rows on blocks of channels of every sequence, from args.sums or,
/// where these are null, from zero. Channels do not depend on each other:
/// neither does the result on the blocks.
template <class S>
void average(
    const CumulativeAverageStep<S>& args,
    const int64_t* lengths,
    typename AverageOps<S>::AddRows add_rows,
    const ParallelFor& parallel_for) {
  const auto [B, T, C] = args.shape;
  const int64_t wide = (C + kWide - 1) / kWide;
  const int64_t width = B * wide >= kEnoughBlocks ? kWide : kNarrow;
  const int64_t blocks = (C + width - 1) / width;
  const int64_t work = std::max<int64_t>(1, T * std::min(C, width));
  const int64_t grain = std::max<int64_t>(1, kGrain / work);
  parallel_for(B * blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t b = i / blocks, first = i % blocks * width;
      const int64_t count = std::min(width, C - first);
      const int64_t start = b * T * C + first;
      const int64_t length = lengths == nullptr ? T : lengths[b];
      alignas(64) double zeros[kWide] = {};
      add_rows(
          {.x = args.x + start,
           .y = args.y + start,
           .stride = C,
           .rows = length,
           .channels = count,
           .position = args.position},
          args.sums == nullptr ? zeros : args.sums + b * C + first);
      for (int64_t t = length; t < T; ++t)
        std::fill_n(args.y + start + t * C, count, S{});
    }
  });
}

}  // namespace

template <class S>
void cumulative_average(const CumulativeAverage<S>& args, const ParallelFor& parallel_for) {
  average<S>(
      {.shape = args.shape, .x = args.x, .y = args.y},
      args.lengths,
      average_ops<S>(best_isa()).forward,
      parallel_for);
}

template <class S>
void cumulative_average_backward(
    const CumulativeAverage<S>& args, const ParallelFor& parallel_for) {
  average<S>(
      {.shape = args.shape, .x = args.x, .y = args.y},
      args.lengths,
      average_ops<S>(best_isa()).backward,
      parallel_for);
}

template <class S>
void cumulative_average_step(
    const CumulativeAverageStep<S>& args, const ParallelFor& parallel_for) {
  average<S>(args, nullptr, average_ops<S>(best_isa()).forward, parallel_for);
}

SEQCONV_INSTANTIATE_STORED(cumulative_average);
SEQCONV_INSTANTIATE_STORED(cumulative_average_backward);
SEQCONV_INSTANTIATE_STORED(cumulative_average_step);

}  // namespace seqconv::internal::kernels
