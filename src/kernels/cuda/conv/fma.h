#pragma once

#include "kernels/cuda/conv/tile.h"

/// Both convolutions by fused multiply-adds, for any storage type and kernel
/// width that fits: a thread owns eight positions of V neighbouring channels
/// and lets x slide through its registers.
namespace seqconv::kernels::cuda {

/// Outputs of one channel that a thread makes at once.
inline constexpr int kRowsPerThread = 8;

/// kCount inputs of the rows from `in` on, zero from `rows` on.
template <int kCount, int V, class S>
SEQCONV_DEVICE void load_window(
    const S* in,
    int pitch,
    int row,
    int rows,
    float (&window)[2 * kRowsPerThread - 1][V],
    int to) {
  unroll<kCount>([&](int i) {
    if (row + i < rows)
      load_wide<V>(in + (row + i) * pitch, window[to + i]);
    else
      unroll<V>([&](int v) { window[to + i][v] = 0.0f; });
  });
}

/// Taps j0 .. j0+7 (those before K) on the eight outputs of a thread.
template <bool kWhole, bool kPerRow, int V>
SEQCONV_DEVICE void apply_taps(
    const float* taps,
    int tap_pitch,
    int count,
    const float (&window)[2 * kRowsPerThread - 1][V],
    float (&sums)[kRowsPerThread][V]) {
  float tap[kRowsPerThread];
  unroll<kRowsPerThread>([&](int i) {
    if (kPerRow || i == 0)
      load_wide<kRowsPerThread>(taps + i * tap_pitch, tap);
    unroll<kRowsPerThread>([&](int j) {
      if (kWhole || j < count)
        unroll<V>([&](int v) { sums[i][v] += tap[j] * window[i + j][v]; });
    });
  });
}

/// sums[i] += sum_j taps[i][j] * in[i + j] for the eight outputs of a thread;
/// taps of one row for all of them unless kPerRow.
template <bool kPerRow, int V, class S>
SEQCONV_DEVICE void convolve_rows(
    const float* taps,
    int tap_pitch,
    int kernel_size,
    const S* in,
    int pitch,
    float (&sums)[kRowsPerThread][V]) {
  constexpr int kAhead = kRowsPerThread - 1;
  const int rows = kAhead + kernel_size;
  float window[kRowsPerThread + kAhead][V];
  load_window<kAhead, V>(in, pitch, 0, rows, window, 0);
  for (int j = 0; j < kernel_size; j += kRowsPerThread) {
    load_window<kRowsPerThread, V>(in, pitch, j + kAhead, rows, window, kAhead);
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
    unroll<kAhead>([&](int i) {
      unroll<V>([&](int v) { window[i][v] = window[i + kRowsPerThread][v]; });
    });
  }
}

/// Part of a phase: one thread's outputs of a chunk, from staged rows `in`,
/// written to task.out with the bias added. Zero at rows that are not real.
template <bool kPerRow, int V, class S>
SEQCONV_DEVICE void convolve_chunk(
    int thread,
    const ConvTask<S>& task,
    const ConvTile& tile,
    const Chunk& chunk,
    const float* taps,
    const S* in) {
  const ConvPlan& plan = task.plan;
  const int vectors = chunk.width / V, real = tile.real(plan.rows);
  const int here =
      static_cast<int>(min<int64_t>(plan.rows, task.steps - tile.first));
  S* const out = task.out + (tile.b * task.steps + tile.first) * task.channels +
      chunk.first;
  for (int n = thread; n < vectors * (plan.rows / kRowsPerThread);
       n += kThreads) {
    const int column = n % vectors * V, row = n / vectors * kRowsPerThread;
    const int head = tile.heads > 1 ? column / task.head_channels : 0;
    const int set = kPerRow ? head * plan.rows + row : head;
    float sums[kRowsPerThread][V] = {};
    if (task.bias != nullptr) {
      unroll<kRowsPerThread>([&](int i) {
        load_wide<V>(task.bias + chunk.first + column, sums[i]);
      });
    }
    if (row < real)
      convolve_rows<kPerRow, V>(
          taps + set * plan.tap_pitch,
          plan.tap_pitch,
          task.taps.kernel_size,
          in + row * plan.pitch + column,
          plan.pitch,
          sums);
    unroll<kRowsPerThread>([&](int i) {
      if (row + i >= real)
        unroll<V>([&](int v) { sums[i][v] = 0.0f; });
      if (row + i < here)
        store_narrow<V>(out + (row + i) * task.channels + column, sums[i]);
    });
  }
}

template <bool kPerRow, class S, class Block>
SEQCONV_DEVICE void
make_forward_taps(Block& block, const ConvTask<S>& task, const ConvTile& tile) {
  const ConvPlan& plan = task.plan;
  const int rows = kPerRow ? plan.rows : 1, count = tile.heads * rows;
  float* const taps = shared_at<float>(block.shared(), plan.taps_at);
  make_taps<S>(
      block,
      task.taps,
      count,
      TileRows<kPerRow, true, S>(task, tile, tile.first, rows),
      LogitRows{taps, plan.tap_pitch, count},
      nullptr,
      [&](int i, int j, const float(&w)[kTapGroup]) {
        store_narrow<kTapGroup>(taps + i * plan.tap_pitch + j, w);
      });
}

/// y of the block's tiles.
template <bool kPerRow, int V>
struct ForwardBody {
  template <class Block, class S>
  static SEQCONV_DEVICE void run(Block& block, const ConvTask<S>& task) {
    const ConvPlan& plan = task.plan;
    const ConvTiles<S> tiles(task, block.index());
    const float* const taps = shared_at<float>(block.shared(), plan.taps_at);
    S* const x = shared_at<S>(block.shared(), plan.x_at);
    for (int64_t n = tiles.begin; n < tiles.end; ++n) {
      const ConvTile tile = tiles.tile(n);
      if (kPerRow || n == tiles.begin)
        make_forward_taps<kPerRow>(block, task, tile);
      for (int c = 0; c < chunks_of(task, tile); ++c) {
        const Chunk chunk = chunk_of(task, tile, c);
        stage_rows<V>(
            block,
            task,
            task.x,
            tile,
            chunk,
            tile.first - task.taps.padding_left,
            plan.in_rows,
            chunk.width,
            x);
        block.each([&](int thread) {
          convolve_chunk<kPerRow, V>(thread, task, tile, chunk, taps, x);
        });
      }
    }
  }
};

}  // namespace seqconv::kernels::cuda
