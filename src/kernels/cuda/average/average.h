#pragma once

#include "kernels/cuda/common/launches.h"
#include "seqconv/kernels/cuda/cumulative_average.h"

/// The cumulative average and its transpose. Every sum is of whole chunks, then
/// of whole slices since the chunk's first, then of positions one by one, in
/// this order whatever the blocks: a result has the same bits alone and in a
/// batch, in a short sequence and in a long one.
namespace seqconv::kernels::cuda {

/// Neighbouring positions: a thread adds up a slice, a block all slices of a
/// tile at once (one for each warp) and tile after tile those of a chunk.
inline constexpr int kAverageSlice = 16;
inline constexpr int kAverageTile = kAverageSlice * kWarps;
inline constexpr int kAverageChunk = 2 * kAverageTile;
static_assert(kAverageChunk == kThreads, "a thread for each share");

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

/// Blocks with one part a sequence, the strips being as wide as the type
/// allows: alignment has no say in whether there is a workspace.
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
  CumulativeAverage<S> args;  ///< workspace: [B, plan.kept(), C]
  AveragePlan plan;
};

/// Shared memory of a block: the shares of a chunk's positions, the sums of a
/// tile's slices [slice, vector, lane], and its rows [tile, lane, vector].
template <class S>
struct AverageMemory {
  double* shares;
  double* slices;
  S* rows;

  static int64_t bytes(int vector) {
    return (kAverageChunk + kWarps * vector * kWarp) *
        static_cast<int64_t>(sizeof(double)) +
        kAverageTile * kWarp * vector * static_cast<int64_t>(sizeof(S));
  }
  SEQCONV_DEVICE AverageMemory(char* memory, int vector)
      : shares(reinterpret_cast<double*>(memory)),
        slices(shares + kAverageChunk),
        rows(reinterpret_cast<S*>(slices + kWarps * vector * kWarp)) {}
};

/// 1 / (number of inputs up to a position).
SEQCONV_HD double average_share(int64_t position) {
  return 1.0 / static_cast<double>(position + 1);
}

/// What a thread holds from one phase to the next: the sums of the chunks
/// before and of the chunk's slices before the tile.
template <int V>
struct AverageHeld {
  double chunks[V];
  double slices[V];
};

/// A sequence and strip of a block, and place n of the order of summation.
template <AverageOrder kOrder, int V, class S>
struct AverageStrip {
  static constexpr bool kForward = kOrder == AverageOrder::kForward;

  const AverageTask<S>& task;
  int64_t b;
  int64_t strip;
  int64_t valid;  ///< real positions of the sequence

  SEQCONV_HD AverageStrip(const AverageTask<S>& of, int64_t sequence, int64_t i)
      : task(of),
        b(sequence),
        strip(i),
        valid(valid_steps(of.args.lengths, b, of.args.shape.steps)) {}

  /// Position of a place; may lie behind the sequence. Slices begin at its
  /// multiples in both orders: padding moves none.
  SEQCONV_HD int64_t position(int64_t place) const {
    return kForward ? place : task.plan.chunks * kAverageChunk - 1 - place;
  }
  SEQCONV_HD int64_t channel(int lane) const {
    return (strip * kWarp + lane) * V;
  }
  SEQCONV_HD bool has(int64_t channel) const {
    return channel < task.args.shape.channels;
  }
  SEQCONV_HD int64_t element(int64_t position, int64_t channel) const {
    const AverageShape& shape = task.args.shape;
    return (b * shape.steps + position) * shape.channels + channel;
  }
  SEQCONV_HD double* chunk_sum(int64_t chunk, int64_t channel) const {
    return task.args.workspace +
        (b * task.plan.kept() + chunk) * task.args.shape.channels + channel;
  }
  /// What an input adds to its sum.
  static SEQCONV_HD double term(S value, double share) {
    const double wide = static_cast<double>(widen(value));
    return kForward ? wide : wide * share;
  }
};

/// One phase: the sums of the slices of the tile at `place`, whose shares these
/// are. Keeps its rows too if they are wanted: in registers they would leave
/// room for a block or two.
template <bool kKeepsRows, int V, class S, class Strip, class Block>
SEQCONV_DEVICE void load_slices(
    Block& block,
    const Strip& strip,
    int64_t place,
    const double* shares,
    const AverageMemory<S>& memory) {
  block.warps([&](auto& warp) {
    const int slice = warp.index(), first = slice * kAverageSlice;
    warp.each([&](int lane) {
      const int64_t c = strip.channel(lane);
      Pack<S, V> in[kAverageSlice];
      SEQCONV_UNROLL
      for (int r = 0; r < kAverageSlice; ++r) {
        const int64_t t = strip.position(place + first + r);
        in[r] = strip.has(c) && t < strip.valid
            ? load_pack<S, V>(strip.task.args.x + strip.element(t, c))
            : Pack<S, V>{};
      }
      double sum[V] = {};
      SEQCONV_UNROLL
      for (int r = 0; r < kAverageSlice; ++r) {
        const double share = shares[first + r];
        SEQCONV_UNROLL
        for (int v = 0; v < V; ++v)
          sum[v] += Strip::term(in[r].v[v], share);
        if (kKeepsRows)
          store_pack<S, V>(
              memory.rows + ((first + r) * kWarp + lane) * V,
              in[r]);
      }
      SEQCONV_UNROLL
      for (int v = 0; v < V; ++v)
        memory.slices[(slice * V + v) * kWarp + lane] = sum[v];
    });
  });
}

/// Takes a thread's sums of slices beyond the tile, and gives those before
/// `slice`.
template <int V>
SEQCONV_DEVICE void pass_slices(
    const double* slices,
    int lane,
    int slice,
    AverageHeld<V>& mine,
    double (&before)[V]) {
  SEQCONV_UNROLL
  for (int v = 0; v < V; ++v) {
    double sum = mine.slices[v];
    SEQCONV_UNROLL
    for (int s = 0; s < kWarps; ++s) {
      if (s == slice)
        before[v] = sum;
      sum += slices[(s * V + v) * kWarp + lane];
    }
    mine.slices[v] = sum;
  }
}

/// Part of a phase: a thread's results of the tile at `place` from its rows;
/// sum[] is that of all before its slice.
template <int V, class S, class Strip>
SEQCONV_DEVICE void store_slice(
    const Strip& strip,
    int slice,
    int lane,
    int64_t place,
    const double* shares,
    const S* rows,
    double (&sum)[V]) {
  const int64_t c = strip.channel(lane);
  const int first = slice * kAverageSlice;
  SEQCONV_NO_UNROLL
  for (int r = first; r < first + kAverageSlice; ++r) {
    const int64_t t = strip.position(place + r);
    const auto row = load_pack<S, V>(rows + (r * kWarp + lane) * V);
    Pack<S, V> out = {};
    SEQCONV_UNROLL
    for (int v = 0; v < V; ++v) {
      sum[v] += Strip::term(row.v[v], shares[r]);
      const double result = Strip::kForward ? sum[v] * shares[r] : sum[v];
      if (t < strip.valid)
        out.v[v] = narrow<S>(static_cast<float>(result));
    }
    if (strip.has(c) && t < strip.task.args.shape.steps)
      store_pack<S, V>(strip.task.args.y + strip.element(t, c), out);
  }
}

/// One phase: the shares of a chunk's positions, and what threads hold before
/// it: nothing and the sums of all chunks before at a block's first chunk.
template <int V, class Strip, class Block, class Held>
SEQCONV_DEVICE void begin_chunk(
    Block& block,
    const Strip& strip,
    int64_t chunk,
    bool is_first,
    bool follows,
    double* shares,
    Held& held) {
  block.warps([&](auto& warp) {
    const int first = warp.index() * kWarp;
    auto& lanes = held.of(warp);
    warp.each([&](int lane) {
      const int64_t place = chunk * kAverageChunk + first + lane;
      shares[first + lane] = average_share(strip.position(place));
      const int64_t c = strip.channel(lane);
      AverageHeld<V>& mine = lanes[lane];
      SEQCONV_UNROLL
      for (int v = 0; v < V; ++v) {
        if (!is_first)
          mine.chunks[v] += mine.slices[v];
        else
          mine.chunks[v] = follows && strip.has(c)
              ? *strip.chunk_sum(chunk - 1, c + v)
              : 0.0;
        mine.slices[v] = 0.0;
      }
    });
  });
}

/// A pass over a block's chunks: the first one, with a block for the sum of a
/// chunk, or the last one, with all results.
template <AverageOrder kOrder, int V, bool kSumsOnly>
struct AverageBody {
  template <class Block, class S>
  static SEQCONV_DEVICE void run(Block& block, const AverageTask<S>& task) {
    const AveragePlan& plan = task.plan;
    const int64_t part = block.index() / plan.strips;
    const int64_t parts = kSumsOnly ? plan.kept() : plan.parts;
    const int64_t count = kSumsOnly ? 1 : plan.chunks_per_block;
    const AverageStrip<kOrder, V, S> strip(
        task,
        part / parts,
        block.index() % plan.strips);
    const int64_t begin = part % parts * count;
    const int64_t end = min(begin + count, plan.chunks);
    const AverageMemory<S> memory(block.shared(), V);
    typename Block::template Fragments<AverageHeld<V>> held(block);
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      begin_chunk<V>(
          block,
          strip,
          chunk,
          chunk == begin,
          !kSumsOnly && begin > 0,
          memory.shares,
          held);
      for (int at = 0; at < kAverageChunk; at += kAverageTile) {
        const int64_t place = chunk * kAverageChunk + at;
        const double* const shares = memory.shares + at;
        load_slices<!kSumsOnly, V>(block, strip, place, shares, memory);
        finish_tile(block, strip, chunk, place, shares, memory, held);
      }
    }
  }

 private:
  /// One phase: what follows from the sums of a tile's slices.
  template <class Block, class Strip, class S, class Held>
  static SEQCONV_DEVICE void finish_tile(
      Block& block,
      const Strip& strip,
      int64_t chunk,
      int64_t place,
      const double* shares,
      const AverageMemory<S>& memory,
      Held& held) {
    const bool is_last = place % kAverageChunk != 0;
    block.warps([&](auto& warp) {
      auto& lanes = held.of(warp);
      warp.each([&](int lane) {
        AverageHeld<V>& mine = lanes[lane];
        double sum[V] = {};
        pass_slices<V>(memory.slices, lane, warp.index(), mine, sum);
        SEQCONV_UNROLL
        for (int v = 0; v < V; ++v)
          sum[v] += mine.chunks[v];
        const int64_t c = strip.channel(lane);
        if (!kSumsOnly)
          store_slice<V>(
              strip,
              warp.index(),
              lane,
              place,
              shares,
              memory.rows,
              sum);
        else if (is_last && warp.index() == 0 && strip.has(c))
          for (int v = 0; v < V; ++v)
            *strip.chunk_sum(chunk, c + v) = mine.slices[v];
      });
    });
  }
};
static_assert(kAverageChunk == 2 * kAverageTile, "finish_tile: the last one");

/// The second pass, a thread for a channel of a sequence: chunk_sums
/// [B, count, C] becomes its sums along the chunks.
struct AverageCarryTask {
  int64_t batch = 0;
  int64_t count = 0;
  int64_t channels = 0;
  double* chunk_sums = nullptr;
};
struct AverageCarryBody {
  template <class Block>
  static SEQCONV_DEVICE void run(Block& block, const AverageCarryTask& task) {
    block.each([&](int thread) {
      const int64_t at = block.index() * kThreads + thread;
      if (at >= task.batch * task.channels)
        return;
      const int64_t C = task.channels;
      double* const sums = task.chunk_sums + at / C * task.count * C + at % C;
      // Several loads under way before the first sum is stored.
      constexpr int kAtOnce = 8;
      double sum = 0;
      for (int64_t first = 0; first < task.count; first += kAtOnce) {
        double in[kAtOnce] = {};
        SEQCONV_UNROLL
        for (int i = 0; i < kAtOnce; ++i)
          if (first + i < task.count)
            in[i] = sums[(first + i) * C];
        SEQCONV_UNROLL
        for (int i = 0; i < kAtOnce; ++i)
          if (first + i < task.count) {
            sum += in[i];
            sums[(first + i) * C] = sum;
          }
      }
    });
  }
};

}  // namespace seqconv::kernels::cuda
