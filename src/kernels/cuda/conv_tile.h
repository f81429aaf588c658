#pragma once

#include "kernels/cuda/conv_normalize.h"
#include "kernels/cuda/conv_plan.h"

/// The phases that the FMA kernels of both convolutions are made of.
namespace seqconv::kernels::cuda {

/// Outputs of one channel that a thread makes at once.
inline constexpr int kRowsPerThread = 8;

template <class T>
SEQCONV_DEVICE T* shared_at(char* shared, int64_t offset) {
  return reinterpret_cast<T*>(shared + offset);
}

/// Where a block copies logits while it does not need x.
template <class S>
SEQCONV_DEVICE LogitRows<AccumulatorOf<S>> logit_rows(
    char* shared,
    const ConvTask<S>& task) {
  return {
      shared_at<AccumulatorOf<S>>(shared, task.plan.x_at),
      logit_pitch(task.taps.kernel_size),
      task.plan.logit_rows};
}

/// Channels [first, first + width) of a tile's heads.
struct Chunk {
  int64_t first = 0;
  int width = 0;
};

/// Chunk `i` of a tile: all of several heads, or a chunk of one.
template <class S>
SEQCONV_DEVICE Chunk
chunk_of(const ConvTask<S>& task, const ConvTile& tile, int i) {
  const int R = task.head_channels;
  const int64_t first = static_cast<int64_t>(tile.head) * R;
  if (tile.heads > 1)
    return {first, tile.heads * R};
  const int begin = i * task.plan.width;
  return {first + begin, min(task.plan.width, R - begin)};
}
template <class S>
SEQCONV_DEVICE int chunks_of(const ConvTask<S>& task, const ConvTile& tile) {
  return tile.heads > 1 ? 1 : chunks_of(task.head_channels, task.plan.width);
}

/// A thread's pack of every row that it takes: rows `row`, row + step, ...;
/// none, with row beyond all, for threads that are left over.
struct ColumnOfRows {
  int column;
  int row;
  int step;
};
template <int V>
SEQCONV_DEVICE ColumnOfRows
column_of_rows(const ConvPlan& plan, int thread, int threads, int width) {
  const int step = plan.by_columns.quotient(threads);
  const int row = plan.by_columns.quotient(thread);
  const int column = (thread - row * plan.columns) * V;
  return {column, row < step && column < width ? row : 1 << 30, step};
}

/// One phase: rows [first, first + rows) of a chunk of tensor [B, T, C] into
/// shared memory, zero outside the sequence and from the chunk's width up to
/// `padded` channels.
template <int V, class S, class Block>
SEQCONV_DEVICE void stage_rows(
    Block& block,
    const ConvTask<S>& task,
    const S* tensor,
    const ConvTile& tile,
    const Chunk& chunk,
    int64_t first,
    int rows,
    int padded,
    S* to) {
  const int begin = static_cast<int>(clamped<int64_t>(-first, 0, rows));
  const int end =
      static_cast<int>(clamped<int64_t>(tile.valid - first, 0, rows));
  const S* const from =
      tensor + (tile.b * task.steps + first) * task.channels + chunk.first;
  const int pitch = task.plan.pitch, channels = static_cast<int>(task.channels);
  block.each([&](int thread) {
    const auto at =
        column_of_rows<V>(task.plan, thread, block.threads(), padded);
    const bool filled = at.column < chunk.width;
    // Several loads under way before the first of them is stored.
    constexpr int kAtOnce = 4;
    SEQCONV_NO_UNROLL
    for (int r0 = at.row; r0 < rows; r0 += kAtOnce * at.step) {
      Pack<S, V> packs[kAtOnce];
      SEQCONV_UNROLL
      for (int i = 0; i < kAtOnce; ++i) {
        const int r = r0 + i * at.step;
        packs[i] = {};
        if (filled && r >= begin && r < end)
          packs[i] =
              load_pack<S, V>(from + (offset_of(r, channels) + at.column));
      }
      SEQCONV_UNROLL
      for (int i = 0; i < kAtOnce; ++i) {
        const int r = r0 + i * at.step;
        if (r < rows)
          store_pack<S, V>(to + r * pitch + at.column, packs[i]);
      }
    }
  });
}

/// `count` inputs of the rows from `in` on, zero from `rows` on.
template <int V, class S, class A>
SEQCONV_DEVICE void load_window(
    const S* in,
    int pitch,
    int row,
    int rows,
    A (&window)[2 * kRowsPerThread - 1][V],
    int to,
    int count) {
  SEQCONV_UNROLL
  for (int i = 0; i < count; ++i) {
    if (row + i < rows) {
      load_wide<V>(in + (row + i) * pitch, window[to + i]);
    } else {
      SEQCONV_UNROLL
      for (int v = 0; v < V; ++v)
        window[to + i][v] = A(0);
    }
  }
}

/// Taps j0 .. j0+7 (those before K) on the eight outputs of a thread.
template <bool kWhole, bool kPerRow, int V, class A>
SEQCONV_DEVICE void apply_taps(
    const A* taps,
    int tap_pitch,
    int count,
    const A (&window)[2 * kRowsPerThread - 1][V],
    A (&sums)[kRowsPerThread][V]) {
  A tap[kRowsPerThread];
  SEQCONV_UNROLL
  for (int i = 0; i < kRowsPerThread; ++i) {
    if (kPerRow || i == 0)
      load_wide<kRowsPerThread>(taps + i * tap_pitch, tap);
    SEQCONV_UNROLL
    for (int j = 0; j < kRowsPerThread; ++j)
      if (kWhole || j < count) {
        SEQCONV_UNROLL
        for (int v = 0; v < V; ++v)
          sums[i][v] += tap[j] * window[i + j][v];
      }
  }
}

/// sums[i] += sum_j taps[i][j] * in[i + j] for the eight outputs of a thread;
/// taps of one row for all of them unless kPerRow.
template <bool kPerRow, int V, class S, class A>
SEQCONV_DEVICE void convolve_rows(
    const A* taps,
    int tap_pitch,
    int kernel_size,
    const S* in,
    int pitch,
    A (&sums)[kRowsPerThread][V]) {
  constexpr int kAhead = kRowsPerThread - 1;
  const int rows = kAhead + kernel_size;
  A window[kRowsPerThread + kAhead][V];
  load_window<V>(in, pitch, 0, rows, window, 0, kAhead);
  for (int j = 0; j < kernel_size; j += kRowsPerThread) {
    load_window<V>(in, pitch, j + kAhead, rows, window, kAhead, kRowsPerThread);
    if (j + kRowsPerThread <= kernel_size)
      apply_taps<true, kPerRow, V>(
          taps + j,
          tap_pitch,
          kRowsPerThread,
          window,
          sums);
    else
      apply_taps<false, kPerRow, V>(
          taps + j,
          tap_pitch,
          kernel_size - j,
          window,
          sums);
    SEQCONV_UNROLL
    for (int i = 0; i < kAhead; ++i) {
      SEQCONV_UNROLL
      for (int v = 0; v < V; ++v)
        window[i][v] = window[i + kRowsPerThread][v];
    }
  }
}

/// Part of a phase: one thread's outputs of a chunk, from staged rows `in`,
/// written to task.out with the bias added. Zero at rows that are not real.
template <bool kPerRow, int V, class S>
SEQCONV_DEVICE void convolve_chunk(
    int thread,
    int threads,
    const ConvTask<S>& task,
    const ConvTile& tile,
    const Chunk& chunk,
    const AccumulatorOf<S>* taps,
    const S* in) {
  using A = AccumulatorOf<S>;
  const ConvPlan& plan = task.plan;
  const int vectors = chunk.width / V, real = tile.real(plan.rows);
  const int here =
      static_cast<int>(min<int64_t>(plan.rows, task.steps - tile.first));
  S* const out = task.out + (tile.b * task.steps + tile.first) * task.channels +
      chunk.first;
  for (int n = thread; n < vectors * (plan.rows / kRowsPerThread);
       n += threads) {
    const int column = n % vectors * V, row = n / vectors * kRowsPerThread;
    const int head = tile.heads > 1 ? column / task.head_channels : 0;
    const int set = kPerRow ? head * plan.rows + row : head;
    A sums[kRowsPerThread][V] = {};
    if (task.bias != nullptr) {
      SEQCONV_UNROLL
      for (int i = 0; i < kRowsPerThread; ++i)
        load_wide<V>(task.bias + chunk.first + column, sums[i]);
    }
    if (row < real)
      convolve_rows<kPerRow, V>(
          taps + set * plan.tap_pitch,
          plan.tap_pitch,
          task.taps.kernel_size,
          in + row * plan.pitch + column,
          plan.pitch,
          sums);
    SEQCONV_UNROLL
    for (int i = 0; i < kRowsPerThread; ++i) {
      if (row + i >= real) {
        SEQCONV_UNROLL
        for (int v = 0; v < V; ++v)
          sums[i][v] = A(0);
      }
      if (row + i < here)
        store_narrow<V>(out + (row + i) * task.channels + column, sums[i]);
    }
  }
}

}  // namespace seqconv::kernels::cuda
