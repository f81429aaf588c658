#pragma once

#include "kernels/cuda/conv/band.h"
#include "kernels/cuda/conv/gradients.h"

/// The gradients of both convolutions on tensor cores.
namespace seqconv::kernels::cuda {

/// sums += 16 rows of grad_y times as many of x, transposed, over the chunk's
/// channels.
template <class S, class Warp>
SEQCONV_DEVICE void add_band_products(
    Warp& warp,
    const S* grad_y,
    const S* x,
    int pitch,
    int width,
    Lanes<WarpSums<kBand>>& sums) {
  for (int k = 0; k < width; k += 16) {
    Lanes<Matrices> a, b;
    load_matrices<false>(warp, a, [&](int lane) {
      return grad_y + down_row(lane) * pitch + k + down_column(lane);
    });
    load_matrices<false>(warp, b, [&](int lane) {
      return x + right_row(lane) * pitch + k + right_column(lane);
    });
    unroll<2>([&](int half) {
      multiply_add<S>(warp, a, b, half, [&](int lane) -> MmaSum& {
        return sums[lane].tile[half];
      });
    });
  }
}

/// One phase: the gradients of a chunk's taps, the diagonals of grad_y times x
/// transposed, added to `grads` (or written, `fresh`). Warps take 16 columns of
/// a band in turn, or of every kBandSums'th band where only their sum is
/// wanted; every diagonal element has one owner.
template <bool kPerRow, int kRows, class S, class Block>
SEQCONV_DEVICE void band_gradients(
    Block& block,
    const ConvTask<S>& task,
    const Chunk& chunk,
    bool fresh,
    const S* x,
    const S* grad_y,
    float* grads) {
  constexpr int kBands = WarpTile<kRows>::kBands;
  constexpr int kKept = kPerRow ? kBands : kBandSums;
  const ConvPlan& plan = task.plan;
  const int K = task.taps.kernel_size, pitch = plan.pitch;
  block.warps([&](auto& warp) {
    const int kept = warp.index() % kKept;
    for (int s = warp.index() / kKept * 16; s < band_columns(K);
         s += kWarps / kKept * 16) {
      Lanes<WarpSums<kBand>> sums;
      warp.each([&](int lane) { sums[lane] = {}; });
      SEQCONV_NO_UNROLL
      for (int n = kept; n < kBands; n += kKept)
        add_band_products(
            warp,
            grad_y + n * kBand * pitch,
            x + (n * kBand + s) * pitch,
            pitch,
            chunk.width,
            sums);
      warp.each([&](int lane) {
        unroll<2>([&](int half) {
          unroll<4>([&](int e) {
            const int row = sum_row(lane, e);
            const int j = s + 8 * half + sum_column(lane, e) - row;
            if (j < 0 || j >= K)
              return;
            float& to = grads[(kept * kBand + row) * plan.grad_pitch + j];
            const float value = sums[lane].tile[half].v[e];
            to = fresh ? value : to + value;
          });
        });
      });
    }
  });
}

template <bool kPerRow, int kRows>
struct BandBackwardBody {
  template <class Block, class S>
  static SEQCONV_DEVICE void run(Block& block, const ConvTask<S>& task) {
    const ConvPlan& plan = task.plan;
    const ConvTiles<S> tiles(task, block.index());
    const int after = task.taps.kernel_size - 1 - task.taps.padding_left;
    S* const x = shared_at<S>(block.shared(), plan.x_at);
    S* const grad_y = shared_at<S>(block.shared(), plan.y_at);
    typename Block::template Fragments<WarpSums<kRows>> sums(block);
    ConvTile tile;
    for (int64_t n = tiles.begin; n < tiles.end; ++n) {
      tile = tiles.tile(n);
      if (kPerRow || n == tiles.begin)
        make_band<kPerRow, /*kReversed=*/true>(block, task, tile);
      for (int c = 0; c < chunks_of(task, tile); ++c) {
        const Chunk chunk = chunk_of(task, tile, c);
        if (task.wants_logits())
          stage_band(
              block,
              task,
              task.x,
              tile,
              chunk,
              task.taps.padding_left,
              x);
        stage_band(block, task, task.grad_y, tile, chunk, after, grad_y);
        if (task.out != nullptr)
          multiply_band<kPerRow, kRows>(
              block,
              plan,
              task.taps.kernel_size,
              chunk.width,
              shared_at<S>(block.shared(), plan.taps_at),
              grad_y,
              sums);
        if (task.wants_logits())
          band_gradients<kPerRow, kRows>(
              block,
              task,
              chunk,
              /*fresh=*/c == 0 && (kPerRow || n == tiles.begin),
              x,
              grad_y + after * plan.pitch,
              shared_at<float>(block.shared(), plan.grads_at));
        if (task.out != nullptr)
          store_band<kRows>(block, task, tile, chunk, sums, x);
      }
      if (kPerRow && task.wants_logits())
        finish_tap_rows</*kManyHeads=*/false>(block, task, tile);
    }
    if (task.sums != nullptr)
      sum_tap_rows(block, task, tiles, tile);
  }
};

}  // namespace seqconv::kernels::cuda
