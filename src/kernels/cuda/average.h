#pragma once

#include "kernels/cuda/average_plan.h"

/// The cumulative average and its transpose. Every sum is of whole chunks, then
/// of whole slices since the chunk's first, then of positions one by one, in
/// this order whatever the blocks: a result has the same bits alone and in a
/// batch, in a short sequence and in a long one.
namespace seqconv::kernels::cuda {

/// 1 / (number of inputs up to a position).
SEQCONV_HD double average_share(int64_t position) {
  return 1.0 / static_cast<double>(position + 1);
}

template <class S>
SEQCONV_HD S narrow_sum(double sum) {
  return Narrow<S>::from(static_cast<AccumulatorOf<S>>(sum));
}

/// What a thread holds from one phase to the next: the sums of the chunks
/// before and of the chunk's slices before the tile.
template <int V>
struct AverageHeld {
  double chunks[V];
  double slices[V];
};

/// What the input at a place adds to its sum.
template <AverageOrder kOrder, class S>
SEQCONV_HD double average_term(S value, double share) {
  const double wide = static_cast<double>(widen(value));
  return kOrder == AverageOrder::kForward ? wide : wide * share;
}

/// One phase: the sums of the slices of the tile at `place`, whose shares these
/// are. Keeps its rows in `rows` unless that is null: in registers they would
/// leave room for a block or two.
template <AverageOrder kOrder, int V, class S, class Block>
SEQCONV_DEVICE void load_slices(
    Block& block,
    const AverageColumn<kOrder, S>& column,
    int64_t place,
    const double* shares,
    S* rows,
    double* sums) {
  block.warps([&](auto& warp) {
    const int slice = warp.index(), first = slice * kAverageSlice;
    warp.each([&](int lane) {
      const int64_t c = column.template channel<V>(lane);
      const bool inside = c < column.task.channels;
      Pack<S, V> in[kAverageSlice];
      SEQCONV_UNROLL
      for (int r = 0; r < kAverageSlice; ++r) {
        const int64_t t = column.position(place + first + r);
        in[r] = inside && t < column.valid
            ? load_pack<S, V>(column.task.x + column.element(t, c))
            : Pack<S, V>{};
      }
      double sum[V] = {};
      SEQCONV_UNROLL
      for (int r = 0; r < kAverageSlice; ++r) {
        const double share = shares[first + r];
        SEQCONV_UNROLL
        for (int v = 0; v < V; ++v)
          sum[v] += average_term<kOrder>(in[r].v[v], share);
        if (rows != nullptr)
          store_pack<S, V>(rows + ((first + r) * kWarp + lane) * V, in[r]);
      }
      SEQCONV_UNROLL
      for (int v = 0; v < V; ++v)
        sums[(slice * V + v) * kWarp + lane] = sum[v];
    });
  });
}

/// Takes a thread's sums of slices beyond the tile, and gives those before
/// `slice`.
template <int V, class Held>
SEQCONV_DEVICE void pass_slices(
    const double* sums,
    int lane,
    int slice,
    Held& mine,
    double (&before)[V]) {
  SEQCONV_UNROLL
  for (int v = 0; v < V; ++v) {
    double sum = mine.slices[v];
    SEQCONV_UNROLL
    for (int s = 0; s < kAverageSlices; ++s) {
      if (s == slice)
        before[v] = sum;
      sum += sums[(s * V + v) * kWarp + lane];
    }
    mine.slices[v] = sum;
  }
}

/// One phase: the results of the tile at `place` from its rows.
template <AverageOrder kOrder, int V, class S, class Block, class Held>
SEQCONV_DEVICE void store_slices(
    Block& block,
    const AverageColumn<kOrder, S>& column,
    int64_t place,
    const AverageMemory<S>& memory,
    const double* shares,
    Held& held) {
  block.warps([&](auto& warp) {
    const int slice = warp.index(), first = slice * kAverageSlice;
    auto& lanes = held.of(warp);
    warp.each([&](int lane) {
      auto& mine = lanes[lane];
      double sum[V] = {};
      pass_slices<V>(memory.slices, lane, slice, mine, sum);
      SEQCONV_UNROLL
      for (int v = 0; v < V; ++v)
        sum[v] += mine.chunks[v];
      const int64_t c = column.template channel<V>(lane);
      SEQCONV_NO_UNROLL
      for (int r = first; r < first + kAverageSlice; ++r) {
        const int64_t t = column.position(place + r);
        const auto row = load_pack<S, V>(memory.rows + (r * kWarp + lane) * V);
        Pack<S, V> out = {};
        SEQCONV_UNROLL
        for (int v = 0; v < V; ++v) {
          sum[v] += average_term<kOrder>(row.v[v], shares[r]);
          const double result =
              kOrder == AverageOrder::kForward ? sum[v] * shares[r] : sum[v];
          if (t < column.valid)
            out.v[v] = narrow_sum<S>(result);
        }
        if (c < column.task.channels && t < column.task.steps)
          store_pack<S, V>(column.task.y + column.element(t, c), out);
      }
    });
  });
}

/// One phase: what a thread holds before a block's first chunk.
template <AverageOrder kOrder, int V, class S, class Block, class Held>
SEQCONV_DEVICE void start_sums(
    Block& block,
    const AverageColumn<kOrder, S>& column,
    int64_t chunk,
    Held& held) {
  block.warps([&](auto& warp) {
    auto& lanes = held.of(warp);
    warp.each([&](int lane) {
      const int64_t c = column.template channel<V>(lane);
      const bool follows = chunk > 0 && c < column.task.channels;
      SEQCONV_UNROLL
      for (int v = 0; v < V; ++v) {
        lanes[lane].chunks[v] =
            follows ? *column.chunk_sum(chunk - 1, c + v) : 0.0;
        lanes[lane].slices[v] = 0.0;
      }
    });
  });
}

/// One phase: the shares of a chunk's positions; the chunk before is whole.
template <AverageOrder kOrder, int V, class S, class Block, class Held>
SEQCONV_DEVICE void begin_chunk(
    Block& block,
    const AverageColumn<kOrder, S>& column,
    int64_t chunk,
    Held& held,
    double* shares) {
  block.warps([&](auto& warp) {
    const int first = warp.index() * kWarp;
    auto& lanes = held.of(warp);
    warp.each([&](int lane) {
      const int64_t place = chunk * kAverageChunk + first + lane;
      shares[first + lane] = average_share(column.position(place));
      auto& mine = lanes[lane];
      SEQCONV_UNROLL
      for (int v = 0; v < V; ++v) {
        mine.chunks[v] += mine.slices[v];
        mine.slices[v] = 0.0;
      }
    });
  });
}

/// The last pass: all results of a block's chunks.
template <AverageOrder kOrder, int V, class S, class Block>
SEQCONV_DEVICE void average_body(Block& block, const AverageTask<S>& task) {
  const AveragePlan& plan = task.plan;
  const int64_t part = block.index() / plan.strips;
  const AverageColumn<kOrder, S> column(
      task,
      part / plan.parts,
      block.index() % plan.strips);
  const int64_t begin = part % plan.parts * plan.chunks_per_block;
  const int64_t end = min(begin + plan.chunks_per_block, plan.chunks);
  const AverageMemory<S> memory(block.shared(), V);
  typename Block::template Fragments<AverageHeld<V>> held(block);
  start_sums<kOrder, V>(block, column, begin, held);
  for (int64_t chunk = begin; chunk < end; ++chunk) {
    begin_chunk<kOrder, V>(block, column, chunk, held, memory.shares);
    for (int at = 0; at < kAverageChunk; at += kAverageTile) {
      const int64_t place = chunk * kAverageChunk + at;
      const double* const shares = memory.shares + at;
      load_slices<kOrder, V>(
          block,
          column,
          place,
          shares,
          memory.rows,
          memory.slices);
      store_slices<kOrder, V>(block, column, place, memory, shares, held);
    }
  }
}

/// The first pass where sequences are split: a block for the sum of a chunk and
/// strip.
template <AverageOrder kOrder, int V, class S, class Block>
SEQCONV_DEVICE void average_sums_body(
    Block& block,
    const AverageTask<S>& task) {
  const AveragePlan& plan = task.plan;
  const int64_t part = block.index() / plan.strips;
  const AverageColumn<kOrder, S> column(
      task,
      part / plan.kept(),
      block.index() % plan.strips);
  const int64_t chunk = part % plan.kept();
  const AverageMemory<S> memory(block.shared(), V);
  typename Block::template Fragments<AverageHeld<V>> held(block);
  start_sums<kOrder, V>(block, column, /*chunk=*/0, held);
  begin_chunk<kOrder, V>(block, column, chunk, held, memory.shares);
  for (int at = 0; at < kAverageChunk; at += kAverageTile) {
    load_slices<kOrder, V>(
        block,
        column,
        chunk * kAverageChunk + at,
        memory.shares + at,
        static_cast<S*>(nullptr),
        memory.slices);
    const bool is_last = at + kAverageTile == kAverageChunk;
    block.warps([&](auto& warp) {
      auto& lanes = held.of(warp);
      warp.each([&](int lane) {
        double before[V] = {};
        pass_slices<V>(memory.slices, lane, warp.index(), lanes[lane], before);
        const int64_t c = column.template channel<V>(lane);
        if (is_last && warp.index() == 0 && c < task.channels)
          for (int v = 0; v < V; ++v)
            *column.chunk_sum(chunk, c + v) = lanes[lane].slices[v];
      });
    });
  }
}

/// The second pass: a thread for a channel of a sequence.
template <class Block>
SEQCONV_DEVICE void average_carry_body(
    Block& block,
    const AverageCarryTask& task) {
  block.each([&](int thread) {
    const int64_t at = block.index() * block.threads() + thread;
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

/// The step form: a thread for a channel of a stream, token by token.
template <class S, class Block>
SEQCONV_DEVICE void average_step_body(
    Block& block,
    const AverageStepTask<S>& task) {
  block.each([&](int thread) {
    const int64_t at = block.index() * block.threads() + thread;
    if (at >= task.batch * task.channels)
      return;
    const int64_t n = at / task.channels, c = at % task.channels;
    const int64_t position = max<int64_t>(0, *task.position);
    double sum = task.sums[at];
    for (int64_t t = 0; t < task.steps; ++t) {
      const int64_t i = (n * task.steps + t) * task.channels + c;
      sum += static_cast<double>(widen(task.x[i]));
      task.y[i] = narrow_sum<S>(sum * average_share(position + t));
    }
    task.sums[at] = sum;
  });
}

}  // namespace seqconv::kernels::cuda
