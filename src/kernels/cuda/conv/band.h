#pragma once

#include "kernels/cuda/conv/body.h"
#include "kernels/cuda/conv/mma.h"

/// Both convolutions on tensor cores, for 16-bit types and kernels of 15 taps
/// and more. Sixteen outputs of a head are a band matrix [16, 16 + K - 1] of
/// its taps times the rows of x that they read; row m of the band begins m
/// places further on ("skewed"), so that it is an ordinary tile in shared
/// memory. Taps are sums of two 16-bit numbers (taps_fit says which). The
/// gradient of the band is grad_y times x transposed, of which the diagonals
/// are the gradients of the taps.
namespace seqconv::internal::kernels::cuda {

/// What a warp of a block with kRows positions makes: kRows / 16 pairs of
/// C tiles side by side, of band `band` and channels from `column` on.
template <int kRows>
struct WarpTile {
  static constexpr int kBands = kRows / kBand;
  static constexpr int kPairs = kBands;  ///< 4 warps, 64 channels
  int band;
  int column;

  SEQCONV_HD explicit WarpTile(int warp)
      : band(warp % kBands), column(warp / kBands * kPairs * 16) {}
};
template <int kRows>
struct WarpSums {
  MmaSum tile[2 * WarpTile<kRows>::kPairs];
};

/// The product of a row of a band, whose taps begin at `taps`, with a column of
/// the rows that it reads. Halves of an infinite tap do not add up to it.
template <class S>
SEQCONV_DEVICE float band_product(const S* taps, int half_band, const S* in, int pitch, int count) {
  float sum = 0;
  for (int j = 0; j < count; ++j) {
    const float upper = widen(taps[j]), lower = widen(taps[half_band + j]);
    sum += (lower == lower ? upper + lower : upper) * widen(in[j * pitch]);
  }
  return sum;
}

/// Part of a phase: a band is zero where a row has no taps, but zero times NaN
/// or an infinity is NaN; sums that became one are made again from their own
/// taps. `taps` and `rows` are those of the warp's part.
template <int kRows, class S>
SEQCONV_DEVICE void mend_sums(
    int lane,
    const ConvPlan& plan,
    int kernel_size,
    bool per_row,
    const S* taps,
    const S* rows,
    WarpSums<kRows>& sums) {
  constexpr int kTiles = 2 * WarpTile<kRows>::kPairs;
  float all = 0;
  unroll<kTiles>([&](int n) { unroll<4>([&](int e) { all += sums.tile[n].v[e] * 0.0f; }); });
  if (all == all)
    return;
  // One copy of the product for all sums: which, as bits.
  static_assert(kTiles * 4 <= 32);
  uint32_t missing = 0;
  unroll<kTiles>([&](int n) {
    unroll<4>([&](int e) {
      const float sum = sums.tile[n].v[e];
      missing |= uint32_t{sum != sum} << (4 * n + e);
    });
  });
  SEQCONV_NO_UNROLL
  for (int i = 0; missing != 0; ++i, missing >>= 1) {
    if (missing % 2 == 0)
      continue;
    const int m = sum_row(lane, i % 4);
    const float sum = band_product(
        taps + m * plan.tap_pitch + m,
        band_elements(plan, per_row),
        rows + m * plan.pitch + 8 * (i / 4) + sum_column(lane, i % 4),
        plan.pitch,
        kernel_size);
    unroll<kTiles>([&](int n) {
      unroll<4>([&](int e) {
        if (4 * n + e == i)
          sums.tile[n].v[e] = sum;
      });
    });
  }
}

/// sums += 16 rows of grad_y times as many of x, transposed, over the chunk's
/// channels.
template <class S, class Warp>
SEQCONV_DEVICE void add_band_products(
    Warp& warp, const S* grad_y, const S* x, int pitch, int width, Lanes<WarpSums<kBand>>& sums) {
  for (int k = 0; k < width; k += 16) {
    Lanes<Matrices> a, b;
    load_matrices<false>(
        warp, a, [&](int lane) { return grad_y + down_row(lane) * pitch + k + down_column(lane); });
    load_matrices<false>(
        warp, b, [&](int lane) { return x + right_row(lane) * pitch + k + right_column(lane); });
    unroll<2>([&](int half) {
      multiply_add<S>(warp, a, b, half, [&](int lane) -> MmaSum& { return sums[lane].tile[half]; });
    });
  }
}

/// The way of ConvBody over tensor cores, with tiles of kRows positions.
template <bool kRow, int kRows>
struct BandPath {
  static constexpr bool kPerRow = kRow;  ///< taps for every position
  static constexpr bool kManyHeads = false;
  static constexpr int kVector = 8;
  static constexpr int kPadding = 16;  ///< zero up to whole fragments
  /// The compiler's own choice spills, or wants more registers than it gains
  /// by.
  static constexpr int min_blocks(bool backward) {
    if (backward)
      return kPerRow && kRows == 32 ? 4 : 0;
    return kRows == 32 ? 0 : kPerRow ? 7 : 6;
  }
  using Sums = WarpSums<kRows>;

  /// Phases: the band of a tile. kReversed makes that of the gradient of x
  /// (ConvBody), whose rows begin K-1-P positions earlier.
  template <bool kReversed, class S, class Block>
  static SEQCONV_DEVICE void make_taps(
      Block& block, const ConvTask<S>& task, const ConvTile& tile) {
    const ConvPlan& plan = task.plan;
    const int K = task.taps.kernel_size, pitch = plan.tap_pitch;
    const TileRows<kPerRow, false, S> row_of(task, tile, kReversed);
    const int half = band_elements(plan, kPerRow);
    S* const band = shared_at<S>(block.shared(), plan.taps_at);
    auto* const stats = shared_at<RowStats>(block.shared(), plan.stats_at);
    const LogitRows logits = logit_rows(block.shared(), task);
    // Two taps, j and the next, of two rows of bands: one instruction rounds
    // both.
    const auto put = [&](int s, int t, int j, const float(&w)[2]) {
      Pack<S, 2> upper, lower;
      upper.v.word[0] = narrow_pair<S>(w[0], w[1]);
      lower.v.word[0] = narrow_pair<S>(
          w[0] - widen(static_cast<S>(upper.v[0])), w[1] - widen(static_cast<S>(upper.v[1])));
      const auto one = [&](int row, int e) {
        const int at = row * pitch + row % kBand + (kReversed ? K - 1 - j - e : j + e);
        if (j + e >= K || row < 0 || row >= (kPerRow ? plan.rows : kBand))
          return;
        band[at] = upper.v[e];
        band[half + at] = lower.v[e];
      };
      one(s, 0);
      one(t, 1);
    };
    block.each([&](int thread) {
      for (int n = thread; n < half / 4; n += kThreads)
        store_pack<S, 8>(band + 8 * n, Pack<S, 8>{});
    });
    cuda::make_taps<S>(
        block,
        task.taps,
        row_of.rows,
        row_of,
        logits,
        kReversed ? stats : nullptr,
        [&](int i, int j, const float(&w)[kTapGroup]) {
          const int s = kReversed ? i - (K - 1) + j : i, on = kReversed ? 1 : 0;
          if (!kPerRow)
            return store_narrow<kTapGroup>(logits.at + j, w);
          put(s, s + on, j, {w[0], w[1]});
          put(s + 2 * on, s + 3 * on, j + 2, {w[2], w[3]});
        });
    if (!kPerRow)
      block.each([&](int thread) {
        const int s = thread % kBand, step = kThreads / kBand;
        for (int j = 2 * (thread / kBand); j < K; j += 2 * step)
          put(s, s, j, {logits.at[j], logits.at[j + 1]});
      });
  }

  /// One phase: sums = the tile's bands times staged rows.
  template <class S, class Block, class Held>
  static SEQCONV_DEVICE void convolve(
      Block& block,
      const ConvTask<S>& task,
      const ConvTile&,
      const Chunk& chunk,
      const S* in,
      Held& sums) {
    const ConvPlan& plan = task.plan;
    const int K = task.taps.kernel_size;
    const S* const band = shared_at<S>(block.shared(), plan.taps_at);
    block.warps([&](auto& warp) {
      const WarpTile<kRows> part(warp.index());
      auto& mine = sums.of(warp);
      warp.each([&](int lane) { mine[lane] = {}; });
      const S* const rows = in + part.band * kBand * plan.pitch + part.column;
      const S* const taps = band + (kPerRow ? part.band * kBand * plan.tap_pitch : 0);
      const int half_band = band_elements(plan, kPerRow);
      for (int k = 0; k < band_columns(K); k += 16) {
        Lanes<Matrices> upper, lower, b;
        const auto from = [&](int lane) {
          return taps + down_row(lane) * plan.tap_pitch + k + down_column(lane);
        };
        load_matrices<false>(warp, upper, from);
        load_matrices<false>(warp, lower, [&](int lane) { return from(lane) + half_band; });
        unroll<WarpTile<kRows>::kPairs>([&](int p) {
          if (part.column + 16 * p >= chunk.width)
            return;
          load_matrices<true>(warp, b, [&](int lane) {
            return rows + (k + down_row(lane)) * plan.pitch + 16 * p + down_column(lane);
          });
          unroll<2>([&](int half) {
            const auto sum = [&](int lane) -> MmaSum& { return mine[lane].tile[2 * p + half]; };
            multiply_add<S>(warp, lower, b, half, sum);
            multiply_add<S>(warp, upper, b, half, sum);
          });
        });
      }
      warp.each(
          [&](int lane) { mend_sums<kRows>(lane, plan, K, kPerRow, taps, rows, mine[lane]); });
    });
  }

  /// Two phases: sums and bias to task.out, by way of `staging` in shared
  /// memory so that whole rows are written.
  template <class S, class Block, class Held>
  static SEQCONV_DEVICE void store(
      Block& block,
      const ConvTask<S>& task,
      const ConvTile& tile,
      const Chunk& chunk,
      Held& sums,
      S* staging) {
    const int pitch = task.plan.pitch, real = tile.real(task);
    block.warps([&](auto& warp) {
      const WarpTile<kRows> part(warp.index());
      auto& mine = sums.of(warp);
      warp.each([&](int lane) {
        unroll<2 * WarpTile<kRows>::kPairs>([&](int n) {
          const int c = part.column + 8 * n + sum_column(lane, 0);
          if (c >= chunk.width)
            return;
          float bias[2] = {0, 0};
          if (task.bias != nullptr)
            for (int i = 0; i < 2; ++i)
              bias[i] = task.bias[chunk.first + c + i];
          SEQCONV_UNROLL
          for (int e = 0; e < 4; e += 2) {
            const float value[2] = {
                mine[lane].tile[n].v[e] + bias[0], mine[lane].tile[n].v[e + 1] + bias[1]};
            const int row = part.band * kBand + sum_row(lane, e);
            store_narrow<2>(staging + row * pitch + c, value);
          }
        });
      });
    });
    block.each([&](int thread) {
      const Place<8> at(task.plan, thread);
      if (at.is_idle(chunk.width))
        return;
      const int64_t c = chunk.first + at.channel();
      const int here = tile.rows(task);
      S* const out = task.out + task.element(tile.b, tile.first, c);
      const int channels = static_cast<int>(task.channels);
      SEQCONV_NO_UNROLL
      for (int row = at.row; row < here; row += at.stride) {
        Pack<S, 8> pack = {};
        if (row < real)
          pack = load_pack<S, 8>(staging + row * pitch + at.channel());
        store_pack<S, 8>(out + offset_of(row, channels), pack);
      }
    });
  }

  /// One phase: the gradients of a chunk's taps, the diagonals of grad_y times
  /// x transposed, added to `grads` (or written, `fresh`). Warps take 16
  /// columns of a band in turn, or of every kBandSums'th band where only their
  /// sum is wanted; every diagonal element has one owner.
  template <class S, class Block>
  static SEQCONV_DEVICE void tap_gradients(
      Block& block,
      const ConvTask<S>& task,
      const ConvTile&,
      const Chunk& chunk,
      bool fresh,
      const S* x,
      const S* grad_y) {
    constexpr int kBands = WarpTile<kRows>::kBands;
    constexpr int kKept = kPerRow ? kBands : kBandSums;
    const ConvPlan& plan = task.plan;
    const int K = task.taps.kernel_size, pitch = plan.pitch;
    float* const grads = shared_at<float>(block.shared(), plan.grads_at);
    block.warps([&](auto& warp) {
      const int kept = warp.index() % kKept;
      for (int s = warp.index() / kKept * 16; s < band_columns(K); s += kWarps / kKept * 16) {
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
};

}  // namespace seqconv::internal::kernels::cuda
