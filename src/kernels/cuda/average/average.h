#pragma once

#include "kernels/cuda/common/launches.h"
#include "kernels/cuda/cumulative_average.h"

/// The cumulative average and its transpose. Every sum is of whole chunks of
/// positions, then of those of the position's own chunk one by one, in this
/// order whatever the blocks: a result has the same bits alone and in a batch,
/// in a short sequence and in a long one.
namespace seqconv::internal::kernels::cuda {

/// Neighbouring positions: those whose shares the threads of a block make.
inline constexpr int kAverageChunk = kThreads;
/// Bytes of a position that a thread takes at once where it can: with more
/// there would be too few threads to keep a device's memory busy.
inline constexpr int kAverageBytes = 4;
/// Blocks that keep a device's memory busy, and how many there are to be where
/// sequences must be split for that.
inline constexpr int64_t kEnoughAverageBlocks = 256;
inline constexpr int64_t kManyAverageBlocks = 1024;

/// A block owns `chunks_per_block` chunks of a sequence, one after the other,
/// and a strip of kThreads * vector channels. With every sequence in one part
/// the only pass reads x once. With several, a first pass takes the sums of
/// chunks, and each block of the last one adds up those before its own.
struct AveragePlan {
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
inline AveragePlan plan_average(const AverageShape& shape, int storage_bytes, int vector) {
  const auto strips = [&](int channels) {
    return chunks_of<int64_t>(shape.channels, kThreads * channels);
  };
  const int64_t whole = shape.batch * strips(kAverageBytes / storage_bytes);
  const int64_t wanted = whole >= kEnoughAverageBlocks ? 1 : chunks_of(kManyAverageBlocks, whole);
  AveragePlan plan;
  plan.strips = strips(vector);
  plan.chunks = chunks_of<int64_t>(shape.steps, kAverageChunk);
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

/// 1 / (number of inputs up to a position).
SEQCONV_HD double average_share(int64_t position) {
  return 1.0 / static_cast<double>(position + 1);
}

/// Sums of a thread's channels.
template <int V>
struct AverageSums {
  double v[V];
};

/// A thread's V channels of a sequence, and place n of the order of summation.
template <AverageOrder kOrder, int V, class S>
struct AverageColumn {
  static constexpr bool kForward = kOrder == AverageOrder::kForward;

  const AverageTask<S>& task;
  int64_t b;
  int64_t channel;
  int64_t valid;  ///< real positions of the sequence

  SEQCONV_DEVICE
  AverageColumn(const AverageTask<S>& of, int64_t sequence, int64_t c)
      : task(of),
        b(sequence),
        channel(c),
        valid(valid_steps(of.args.lengths, b, of.args.shape.steps)) {}

  /// Position of a place; may lie behind the sequence. Chunks begin at its
  /// multiples in both orders: padding moves none.
  static SEQCONV_HD int64_t position(const AveragePlan& plan, int64_t place) {
    return kForward ? place : plan.chunks * kAverageChunk - 1 - place;
  }
  SEQCONV_DEVICE int64_t element(int64_t position) const {
    const AverageShape& shape = task.args.shape;
    return (b * shape.steps + position) * shape.channels + channel;
  }
  SEQCONV_DEVICE double* chunk_sums(int64_t chunk) const {
    return task.args.workspace + (b * task.plan.kept() + chunk) * task.args.shape.channels +
        channel;
  }
  /// sums = those of `count` chunks, which are in the workspace.
  SEQCONV_DEVICE void start(int64_t count, double (&sums)[V]) const {
    unroll<V>([&](int v) { sums[v] = 0.0; });
    load_ahead<8>(
        0,
        static_cast<int>(count),
        1,
        [&](int i) {
          AverageSums<V> in = {};
          if (i < count)
            unroll<V>([&](int v) { in.v[v] = chunk_sums(i)[v]; });
          return in;
        },
        [&](int, const AverageSums<V>& in) { unroll<V>([&](int v) { sums[v] += in.v[v]; }); });
  }
  /// sums += the inputs of a chunk, whose shares these are; the results of its
  /// positions are written if they are wanted, `sums` being of all before.
  template <bool kWritten>
  SEQCONV_DEVICE void add_chunk(int64_t chunk, const double* shares, double (&sums)[V]) const {
    const auto at = [&](int r) { return position(task.plan, chunk * kAverageChunk + r); };
    double here[V] = {};
    load_ahead<16>(
        0,
        kAverageChunk,
        1,
        [&](int r) {
          return at(r) < valid ? load_pack<S, V>(task.args.x + element(at(r))) : Pack<S, V>{};
        },
        [&](int r, const Pack<S, V>& row) {
          Pack<S, V> out = {};
          unroll<V>([&](int v) {
            const auto in = static_cast<double>(widen(row.v[v]));
            here[v] += kForward ? in : in * shares[r];
            const double sum = sums[v] + here[v];
            if (at(r) < valid)
              out.v[v] = narrow<S>(static_cast<float>(kForward ? sum * shares[r] : sum));
          });
          if (kWritten && at(r) < task.args.shape.steps)
            store_pack<S, V>(task.args.y + element(at(r)), out);
        });
    unroll<V>([&](int v) { sums[v] += here[v]; });
  }
};

/// A pass over a block's chunks: the first one, with a block for the sum of a
/// chunk, or the last one, with all results.
template <AverageOrder kOrder, int V, bool kSumsOnly>
struct AverageBody {
  template <class Block, class S>
  static SEQCONV_DEVICE void run(Block& block, const AverageTask<S>& task) {
    using Column = AverageColumn<kOrder, V, S>;
    const AveragePlan& plan = task.plan;
    const int64_t part = block.index() / plan.strips;
    const int64_t strip = block.index() % plan.strips;
    const int64_t parts = kSumsOnly ? plan.kept() : plan.parts;
    const int64_t count = kSumsOnly ? 1 : plan.chunks_per_block;
    const int64_t begin = part % parts * count;
    const int64_t end = min(begin + count, plan.chunks);
    double* const shares = shared_at<double>(block.shared(), 0);
    typename Block::template Fragments<AverageSums<V>> held(block);
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      block.each([&](int thread) {
        shares[thread] = average_share(Column::position(plan, chunk * kAverageChunk + thread));
      });
      block.warps([&](auto& warp) {
        auto& lanes = held.of(warp);
        warp.each([&](int lane) {
          const int64_t n = strip * kThreads + warp.index() * kWarp + lane;
          const Column column(task, part / parts, n * V);
          if (column.channel >= task.args.shape.channels)
            return;
          double(&sums)[V] = lanes[lane].v;
          if (chunk == begin)
            column.start(kSumsOnly ? 0 : chunk, sums);
          column.template add_chunk<!kSumsOnly>(chunk, shares, sums);
          unroll<V>([&](int v) {
            if (kSumsOnly)
              column.chunk_sums(chunk)[v] = sums[v];
          });
        });
      });
    }
  }
};

/// A thread for a channel of a stream, token by token.
struct AverageStepBody {
  template <class Block, class S>
  static SEQCONV_DEVICE void run(Block& block, const CumulativeAverageStep<S>& task) {
    const AverageShape& shape = task.shape;
    block.each([&](int thread) {
      const int64_t at = block.index() * kThreads + thread;
      if (at >= shape.batch * shape.channels)
        return;
      const int64_t n = at / shape.channels, c = at % shape.channels;
      const int64_t position = max<int64_t>(0, *task.position);
      double sum = task.sums[at];
      for (int64_t t = 0; t < shape.steps; ++t) {
        const int64_t i = (n * shape.steps + t) * shape.channels + c;
        sum += static_cast<double>(widen(task.x[i]));
        task.y[i] = narrow<S>(static_cast<float>(sum * average_share(position + t)));
      }
      task.sums[at] = sum;
    });
  }
};

template <class S>
int64_t cumulative_average_workspace(const AverageShape& shape) {
  if (is_empty(shape))
    return 0;
  return plan_average(shape, sizeof(S), /*vector=*/1).kept() * shape.batch * shape.channels;
}

/// Queues the passes with V channels to a thread.
template <AverageOrder kOrder, int V, class S, class Launcher>
void launch_average(Launcher& launcher, const CumulativeAverage<S>& args) {
  const AverageShape& shape = args.shape;
  const AverageTask<S> task = {args, plan_average(shape, sizeof(S), V)};
  const int64_t kept = task.plan.kept();
  constexpr int64_t kShared = kAverageChunk * sizeof(double);
  if (kept > 0)
    launcher.template run<AverageBody<kOrder, V, /*kSumsOnly=*/true>>(
        shape.batch * kept * task.plan.strips, kShared, task);
  launcher.template run<AverageBody<kOrder, V, /*kSumsOnly=*/false>>(
      task.plan.blocks, kShared, task);
}

template <class S, class Launcher>
void run(Launcher& launcher, const CumulativeAverage<S>& args) {
  if (is_empty(args.shape))
    return;
  const auto launch = [&]<int V>(std::integral_constant<int, V>) {
    args.order == AverageOrder::kForward
        ? launch_average<AverageOrder::kForward, V>(launcher, args)
        : launch_average<AverageOrder::kBackward, V>(launcher, args);
  };
  with_vector<S, kAverageBytes>(args.shape.channels, {args.x, args.y}, launch);
}

template <class S, class Launcher>
void run(Launcher& launcher, const CumulativeAverageStep<S>& args) {
  const AverageShape& shape = args.shape;
  if (!is_empty(shape))
    launcher.template run<AverageStepBody>(blocks_for(shape.batch * shape.channels), 0, args);
}

}  // namespace seqconv::internal::kernels::cuda
