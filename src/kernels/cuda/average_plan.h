#pragma once

#include "kernels/cuda/block.h"
#include "seqconv/kernels/cuda/cumulative_average.h"

/// How a cumulative average is cut into blocks, in which order its sums are
/// taken, and what its kernels are given.
namespace seqconv::kernels::cuda {

inline constexpr int kAverageThreads = 128;
/// Neighbouring positions: a thread adds up a slice, a block all slices of a
/// tile at once (one for each warp) and tile after tile those of a chunk.
inline constexpr int kAverageSlice = 16;
inline constexpr int kAverageSlices = kAverageThreads / kWarp;
inline constexpr int kAverageTile = kAverageSlice * kAverageSlices;
inline constexpr int kAverageChunk = 2 * kAverageTile;
static_assert(kAverageChunk == kAverageThreads, "a thread for each share");

/// Bytes of a position that a thread takes at once where it can.
inline constexpr int kAverageBytes = 8;
/// Blocks that keep a device's memory busy, and how many there are to be where
/// sequences must be split for that.
inline constexpr int64_t kEnoughAverageBlocks = 256;
inline constexpr int64_t kManyAverageBlocks = 1024;

/// Which way a channel is summed: from the first position on, or from the last
/// one back for the gradient.
enum class AverageOrder { kForward, kBackward };

/// A block owns `chunks_per_block` chunks of a sequence, one after the other,
/// and a strip of kWarp * vector channels. With every sequence in one part the
/// only pass reads x once. With several, a first pass takes the sums of chunks,
/// a second one those of all chunks before each.
struct AveragePlan {
  int vector = 1;  ///< channels of a thread
  int64_t strips = 0;
  int64_t chunks = 0;  ///< of a sequence
  int64_t chunks_per_block = 1;
  int64_t parts = 1;   ///< of a sequence
  int64_t blocks = 0;  ///< of the last pass

  /// Sums of chunks that are kept for a sequence and channel: those that
  /// another one follows.
  SEQCONV_HD int64_t kept() const { return parts > 1 ? chunks - 1 : 0; }
};

/// Blocks with one part a sequence, the strips being as wide as S allows:
/// alignment has no say in whether there is a workspace.
inline AveragePlan
plan_average(const AverageShape& shape, int storage_bytes, int vector) {
  AveragePlan plan;
  plan.vector = vector;
  plan.strips = chunks_of<int64_t>(shape.channels, kWarp * vector);
  plan.chunks = chunks_of<int64_t>(shape.steps, kAverageChunk);
  const int64_t whole = shape.batch *
      chunks_of<int64_t>(shape.channels, kWarp * kAverageBytes / storage_bytes);
  const int64_t wanted =
      whole >= kEnoughAverageBlocks ? 1 : chunks_of(kManyAverageBlocks, whole);
  plan.chunks_per_block = chunks_of(plan.chunks, min(wanted, plan.chunks));
  plan.parts = chunks_of(plan.chunks, plan.chunks_per_block);
  plan.blocks = shape.batch * plan.parts * plan.strips;
  return plan;
}

/// What the passes over a sequence are given.
template <class S>
struct AverageTask {
  AveragePlan plan;
  int64_t batch = 0;
  int64_t steps = 0;
  int64_t channels = 0;
  const int64_t* lengths = nullptr;
  const S* x = nullptr;
  S* y = nullptr;
  double* chunk_sums = nullptr;  ///< [B, plan.kept(), C], in order of summation
};

/// Shared memory of a block: the shares of a chunk's positions, the sums of a
/// tile's slices [slice, vector, lane], and its rows [tile, lane, vector].
template <class S>
struct AverageMemory {
  double* shares;
  double* slices;
  S* rows;

  static int64_t bytes(int vector) {
    return (kAverageChunk + kAverageSlices * vector * kWarp) *
        static_cast<int64_t>(sizeof(double)) +
        kAverageTile * kWarp * vector * static_cast<int64_t>(sizeof(S));
  }
  SEQCONV_DEVICE AverageMemory(char* memory, int vector)
      : shares(reinterpret_cast<double*>(memory)),
        slices(shares + kAverageChunk),
        rows(reinterpret_cast<S*>(slices + kAverageSlices * vector * kWarp)) {}
};

/// A thread's channels, and place n of the order of summation.
template <AverageOrder kOrder, class S>
struct AverageColumn {
  const AverageTask<S>& task;
  int64_t b;
  int64_t valid;  ///< real positions of the sequence
  int64_t strip;

  SEQCONV_HD
  AverageColumn(const AverageTask<S>& of, int64_t sequence, int64_t of_strip)
      : task(of),
        b(sequence),
        valid(valid_steps(of.lengths, sequence, of.steps)),
        strip(of_strip) {}

  /// Position of a place; may lie behind the sequence. Slices begin at its
  /// multiples in both orders: padding moves none.
  SEQCONV_HD int64_t position(int64_t place) const {
    return kOrder == AverageOrder::kForward
        ? place
        : task.plan.chunks * kAverageChunk - 1 - place;
  }
  template <int V>
  SEQCONV_HD int64_t channel(int lane) const {
    return (strip * kWarp + lane) * V;
  }
  SEQCONV_HD int64_t element(int64_t position, int64_t channel) const {
    return (b * task.steps + position) * task.channels + channel;
  }
  SEQCONV_HD double* chunk_sum(int64_t chunk, int64_t channel) const {
    return task.chunk_sums + (b * task.plan.kept() + chunk) * task.channels +
        channel;
  }
};

/// chunk_sums [B, count, C] becomes its sums along the chunks.
struct AverageCarryTask {
  int64_t batch = 0;
  int64_t count = 0;
  int64_t channels = 0;
  double* chunk_sums = nullptr;
};

template <class S>
struct AverageStepTask {
  int64_t batch = 0;
  int64_t steps = 0;
  int64_t channels = 0;
  const int64_t* position = nullptr;
  const S* x = nullptr;
  double* sums = nullptr;
  S* y = nullptr;
};

}  // namespace seqconv::kernels::cuda
