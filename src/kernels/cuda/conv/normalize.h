#pragma once

#include "kernels/cuda/conv/taps.h"

/// Rows of logits to taps, and gradients of taps to those of logits.
/// The lanes that share a row make its sums by shuffles: no barrier, and an
/// exponential is made once.
namespace seqconv::internal::kernels::cuda {

/// e^x for x that is not positive. The device's power of two is wrong by 2 ulp
/// and x / ln 2 by its rounding: together less than 2^-23 of 1, at any x.
SEQCONV_DEVICE float exp_of_negative(float x) {
#ifdef __CUDA_ARCH__
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x * 1.44269504f));
  return power;
#else
  return std::exp(x);
#endif
}

/// Gives lanes the statistics of their rows and replaces logits by
/// exponentials.
template <class Warp>
SEQCONV_DEVICE void softmax_lanes(
    Warp& warp,
    const TapSource& source,
    const LogitRows& logits,
    Lanes<LaneRow>& lanes,
    Lanes<RowStats>& stats) {
  Lanes<float> max_of, sums;
  warp.each([&](int lane) {
    float found = -INFINITY;
    for_groups(logits, lanes[lane], [&](int, const float(&w)[kTapGroup], float*) {
      SEQCONV_UNROLL
      for (const float value : w)
        found = std::fmax(found, value);
    });
    max_of[lane] = found;
  });
  join_lanes<1>(warp, max_of, source.part_bits, [](float a, float b) { return std::fmax(a, b); });
  warp.each([&](int lane) {
    // A row that is not real is all minus infinity: zero, not NaN.
    if (!lanes[lane].real)
      max_of[lane] = 0.0f;
    const float shift = max_of[lane];
    float sum = 0;
    for_groups(logits, lanes[lane], [&](int, float(&w)[kTapGroup], float* at) {
      SEQCONV_UNROLL
      for (float& value : w) {
        value = exp_of_negative(value - shift);
        sum += value;
      }
      store_narrow<kTapGroup>(at, w);
    });
    sums[lane] = sum;
  });
  join_lanes<1>(warp, sums, source.part_bits, AddFloats{});
  warp.each([&](int lane) {
    stats[lane] = {max_of[lane], lanes[lane].real ? 1.0f / sums[lane] : 0.0f};
  });
}

/// put(j, values) for a lane's taps, four from j on, after DropConnect, from
/// what softmax_lanes left, or from taps that were given.
template <class Put>
SEQCONV_DEVICE void tap_groups_of(
    const TapSource& source,
    const LogitRows& logits,
    const LaneRow& mine,
    const TapRow& row,
    const RowStats& stats,
    const Put& put) {
  DropFactors drop(source, row, mine.begin);
  for_groups(logits, mine, [&](int j, float(&w)[kTapGroup], float*) {
    SEQCONV_UNROLL
    for (float& value : w)
      value *= stats.scale;
    drop.apply(j, w);
    put(j, w);
  });
}

/// Phases: put(i, j, values) for the taps of row i, i < count, after
/// DropConnect, four from j on (some beyond K), and stats[i] unless null. Rows
/// of logits pass through `logits`; put may write where row i of logits has the
/// same elements.
template <class S, class Block, class RowOf, class Put>
SEQCONV_DEVICE void make_taps(
    Block& block,
    const TapSource& source,
    int count,
    const RowOf& row_of,
    const LogitRows& logits,
    RowStats* stats,
    const Put& put) {
  for_logit_rows<S>(block, source, count, row_of, logits, [&](auto& warp, auto& lanes, int first) {
    Lanes<RowStats> of;
    if (source.softmax)
      softmax_lanes(warp, source, logits, lanes, of);
    else
      warp.each([&](int lane) { of[lane] = {0.0f, lanes[lane].real ? 1.0f : 0.0f}; });
    warp.each([&](int lane) {
      const LaneRow mine = lanes[lane];
      if (mine.begin >= mine.end)
        return;
      const int i = first + mine.row;
      if (stats != nullptr && mine.begin == 0)
        stats[i] = of[lane];
      tap_groups_of(
          source,
          logits,
          mine,
          row_of(i, /*edges=*/true),
          of[lane],
          [&](int j, const float(&w)[kTapGroup]) { put(i, j, w); });
    });
  });
}

/// First half of the backward pass of a lane's groups: gradients of taps after
/// DropConnect -> before it; gives its part of the row's sum. With a softmax,
/// taps take the place of logits.
SEQCONV_DEVICE float dot_groups(
    const TapSource& source,
    const LogitRows& logits,
    const LaneRow& mine,
    const TapRow& row,
    const RowStats& stats,
    float* grads) {
  DropFactors drop(source, row, mine.begin);
  float dot = 0;
  for_groups(logits, mine, [&](int j, float(&w)[kTapGroup], float* at) {
    float g[kTapGroup];
    load_wide<kTapGroup>(grads + j, g);
    unroll<kTapGroup>([&](int e) {
      if (j + e >= source.kernel_size)
        g[e] = 0.0f;
    });
    drop.apply(j, g);
    store_narrow<kTapGroup>(grads + j, g);
    if (source.softmax) {
      SEQCONV_UNROLL
      for (float& value : w)
        value = exp_of_negative(value - stats.shift) * stats.scale;
      store_narrow<kTapGroup>(at, w);
    }
    unroll<kTapGroup>([&](int e) { dot += g[e] * w[e]; });
  });
  return dot;
}

/// Second half: gradients of taps -> of logits.
SEQCONV_DEVICE void gradient_groups(
    const TapSource& source,
    const LogitRows& logits,
    const LaneRow& mine,
    const TapRow& row,
    const RowStats& stats,
    float dot,
    float* grads) {
  for_groups(logits, mine, [&](int j, float(&w)[kTapGroup], float*) {
    float g[kTapGroup];
    load_wide<kTapGroup>(grads + j, g);
    unroll<kTapGroup>([&](int e) {
      g[e] = j + e < row.begin || j + e >= row.end ? 0.0f
          : source.softmax                         ? w[e] * (g[e] - dot)
                                                   : g[e];
    });
    store_narrow<kTapGroup>(grads + j, g);
  });
}

/// Phases: the gradients of taps -> of logits, in place: grads + i * pitch
/// of row i, on a multiple of 16 bytes.
template <class S, class Block, class RowOf, class StatsOf>
SEQCONV_DEVICE void taps_backward(
    Block& block,
    const TapSource& source,
    int count,
    const RowOf& row_of,
    const StatsOf& stats_of,
    const LogitRows& logits,
    float* grads,
    int grad_pitch) {
  for_logit_rows<S>(block, source, count, row_of, logits, [&](auto& warp, auto& lanes, int first) {
    const auto each = [&](auto&& f) {
      warp.each([&](int lane) {
        const LaneRow mine = lanes[lane];
        const int i = first + mine.row;
        if (mine.begin < mine.end)
          f(lane, mine, row_of(i, source.renormalize_edges), stats_of(i), grads + i * grad_pitch);
      });
    };
    Lanes<float> dots = {};
    each([&](int lane, auto mine, auto row, auto stats, float* grad) {
      dots[lane] = dot_groups(source, logits, mine, row, stats, grad);
    });
    join_lanes<1>(warp, dots, source.part_bits, AddFloats{});
    each([&](int lane, auto mine, auto row, auto stats, float* grad) {
      gradient_groups(source, logits, mine, row, stats, dots[lane], grad);
    });
  });
}

}  // namespace seqconv::internal::kernels::cuda
