#pragma once

#include "kernels/cuda/conv/body.h"

/// Both convolutions by fused multiply-adds, for any storage type and kernel
/// width that fits: a thread owns eight positions of V neighbouring channels
/// and lets x slide through its registers.
namespace seqconv::internal::kernels::cuda {

/// Outputs of one channel that a thread makes at once.
inline constexpr int kRowsPerThread = 8;

/// kCount inputs of the rows from `in` on, zero from `rows` on.
template <int kCount, int V, class S>
SEQCONV_DEVICE void load_window(
    const S* in, int pitch, int row, int rows, float (&window)[2 * kRowsPerThread - 1][V], int to) {
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
      apply_taps<true, kPerRow, V>(taps + j, tap_pitch, kRowsPerThread, window, sums);
    else
      apply_taps<false, kPerRow, V>(taps + j, tap_pitch, kernel_size - j, window, sums);
    unroll<kAhead>(
        [&](int i) { unroll<V>([&](int v) { window[i][v] = window[i + kRowsPerThread][v]; }); });
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
  const int vectors = chunk.width / V, real = tile.real(task);
  const int here = tile.rows(task);
  S* const out = task.out + task.element(tile.b, tile.first, chunk.first);
  for (int n = thread; n < vectors * (plan.rows / kRowsPerThread); n += kThreads) {
    const int column = n % vectors * V, row = n / vectors * kRowsPerThread;
    const int head = tile.heads > 1 ? column / task.head_channels : 0;
    const int set = kPerRow ? head * plan.rows + row : head;
    float sums[kRowsPerThread][V] = {};
    if (task.bias != nullptr) {
      unroll<kRowsPerThread>(
          [&](int i) { load_wide<V>(task.bias + chunk.first + column, sums[i]); });
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

/// One V-wide way of ConvBody.
template <bool kRows, int V>
struct FmaPath {
  static constexpr bool kPerRow = kRows;  ///< taps for every position
  static constexpr bool kManyHeads = true;
  static constexpr int kVector = V;
  static constexpr int kPadding = 1;
  /// The compiler's own choice spills.
  static constexpr int min_blocks(bool backward) {
    return !backward || kPerRow ? 0 : V == 4 ? 4 : 5;
  }
  struct Sums {};  ///< nothing lives beyond a phase

  /// Phases: reversed taps let input s feed the outputs s - (K-1-P) + i through
  /// tap K-1-i. Their statistics are kept for the gradients.
  template <bool kReversed, class S, class Block>
  static SEQCONV_DEVICE void make_taps(
      Block& block, const ConvTask<S>& task, const ConvTile& tile) {
    const ConvPlan& plan = task.plan;
    const int K = task.taps.kernel_size;
    const TileRows<kPerRow, true, S> row_of(task, tile, kReversed);
    const int count = tile.heads * row_of.rows;
    float* const taps = shared_at<float>(block.shared(), plan.taps_at);
    auto* const stats = shared_at<RowStats>(block.shared(), plan.stats_at);
    cuda::make_taps<S>(
        block,
        task.taps,
        count,
        row_of,
        kReversed ? logit_rows(block.shared(), task) : LogitRows{taps, plan.tap_pitch, count},
        kReversed ? stats : nullptr,
        [&](int i, int j0, const float(&w)[kTapGroup]) {
          if (!kReversed)
            return store_narrow<kTapGroup>(taps + i * plan.tap_pitch + j0, w);
          const int head = row_of.head_of(i), r = i - head * row_of.rows;
          unroll<kTapGroup>([&](int e) {
            const int j = j0 + e, s = kPerRow ? r - (K - 1) + j : 0;
            const int to = kPerRow ? head * plan.rows + s : i;
            if (j < K && s >= 0 && s < plan.rows)
              taps[to * plan.tap_pitch + K - 1 - j] = w[e];
          });
        });
  }

  /// One phase, which also stores.
  template <class S, class Block, class Held>
  static SEQCONV_DEVICE void convolve(
      Block& block,
      const ConvTask<S>& task,
      const ConvTile& tile,
      const Chunk& chunk,
      const S* in,
      Held&) {
    const float* const taps = shared_at<float>(block.shared(), task.plan.taps_at);
    block.each(
        [&](int thread) { convolve_chunk<kPerRow, V>(thread, task, tile, chunk, taps, in); });
  }
  template <class... Any>
  static SEQCONV_DEVICE void store(const Any&...) {}

  /// One phase: gradients of taps, sum over the chunk's channels of
  /// x[r + j] * grad_y[r], added to `grads` (or written, `fresh`). 2^split_bits
  /// lanes share a row and eight of its taps; where only the sum over rows is
  /// wanted, a warp takes eight taps, each lane a row.
  template <class S, class Block>
  static SEQCONV_DEVICE void tap_gradients(
      Block& block,
      const ConvTask<S>& task,
      const ConvTile& tile,
      const Chunk& chunk,
      bool fresh,
      const S* x,
      const S* grad_y) {
    const ConvPlan& plan = task.plan;
    const int K = task.taps.kernel_size;
    const int columns = (tile.heads > 1 ? task.head_channels : chunk.width) / V;
    const int sets = tile.heads * plan.grad_rows;
    const int units = sets * chunks_of(K, 8);
    const int bits = kPerRow ? plan.split_bits : 5, lanes = 1 << bits;
    float* const grads = shared_at<float>(block.shared(), plan.grads_at);
    block.warps([&](auto& warp) {
      for (int n0 = warp.index() * kWarp; n0 < units << bits; n0 += kThreads) {
        Lanes<float> sums[8];
        warp.each([&](int lane) {
          unroll<8>([&](int j) { sums[j][lane] = 0; });
          const int unit = (n0 + lane) >> bits, part = lane & (lanes - 1);
          const int set = unit % sets, j0 = unit / sets * 8;
          const int head = set / plan.grad_rows;
          int r = set % plan.grad_rows;
          if (!kPerRow)
            r = r * kWarp + part;
          if (unit >= units || r >= plan.rows)
            return;
          const int begin = head * columns * V;
          const S* const rows = x + (r + j0) * plan.pitch + begin;
          const S* const g = grad_y + r * plan.pitch + begin;
          for (int c = kPerRow ? part : 0; c < columns; c += kPerRow ? lanes : 1) {
            float dy[V];
            load_wide<V>(g + c * V, dy);
            unroll<8>([&](int j) {
              if (j0 + j < K) {
                float in[V];
                load_wide<V>(rows + j * plan.pitch + c * V, in);
                unroll<V>([&](int v) { sums[j][lane] += in[v] * dy[v]; });
              }
            });
          }
        });
        unroll<8>([&](int j) { join_lanes<kPerRow ? 2 : 5>(warp, sums[j], bits, AddFloats{}); });
        warp.each([&](int lane) {
          const int unit = (n0 + lane) >> bits;
          if (unit >= units || (lane & (lanes - 1)) != 0)
            return;
          const int j0 = unit / sets * 8;
          float* const to = grads + unit % sets * plan.grad_pitch + j0;
          unroll<8>([&](int j) {
            if (j0 + j < K)
              to[j] = fresh ? sums[j][lane] : to[j] + sums[j][lane];
          });
        });
      }
    });
  }
};

}  // namespace seqconv::internal::kernels::cuda
