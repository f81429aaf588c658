#pragma once

#include <type_traits>

#include "kernels/cuda/conv_rows.h"

/// Rows of logits to taps, and gradients of taps to those of logits.
/// The lanes that share a row make its sums by shuffles: no barrier, and an
/// exponential is made once.
namespace seqconv::kernels::cuda {

/// Gives scale[lane] its row's 1 / sum and replaces logits by
/// exponentials.
template <class A, class Warp>
SEQCONV_DEVICE void softmax_lanes(
    Warp& warp,
    const TapSource& source,
    const LogitRows<A>& logits,
    Lanes<LaneRow>& lanes,
    Lanes<RowStats<A>>& stats) {
  Lanes<A> max_of, sums;
  warp.each([&](int lane) {
    A found = static_cast<A>(-INFINITY);
    for_groups(logits, lanes[lane], [&](int, const A(&w)[kTapGroup], A*) {
      SEQCONV_UNROLL
      for (const A value : w)
        found = std::fmax(found, value);
    });
    max_of[lane] = found;
  });
  join_neighbours(warp, max_of, source.part_bits, [](A a, A b) {
    return std::fmax(a, b);
  });
  warp.each([&](int lane) {
    // A row that is not real is all minus infinity: zero, not NaN.
    if (!lanes[lane].real)
      max_of[lane] = A(0);
    const A shift = max_of[lane];
    A sum = 0;
    for_groups(logits, lanes[lane], [&](int, A(&w)[kTapGroup], A* at) {
      SEQCONV_UNROLL
      for (A& value : w) {
        value = exp_of_negative(value - shift);
        sum += value;
      }
      store_narrow<kTapGroup>(at, w);
    });
    sums[lane] = sum;
  });
  join_neighbours(warp, sums, source.part_bits, [](A a, A b) { return a + b; });
  warp.each([&](int lane) {
    stats[lane] = {max_of[lane], lanes[lane].real ? A(1) / sums[lane] : A(0)};
  });
}

/// The same for the other normalisations: logits become taps but for the
/// scale. A loop over elements in memory, so that the choice is there once.
template <class A, class Warp>
SEQCONV_DEVICE void norm_lanes(
    Warp& warp,
    const TapSource& source,
    const LogitRows<A>& logits,
    Lanes<LaneRow>& lanes,
    Lanes<RowStats<A>>& stats) {
  const Normalization normalization = source.normalization;
  const bool squared = is_squared(normalization);
  Lanes<A> sums;
  warp.each([&](int lane) {
    const LaneRow mine = lanes[lane];
    A* const at = logits.at + mine.row * logits.pitch;
    A sum = 0;
    SEQCONV_NO_UNROLL
    for (int j = mine.begin * kTapGroup; j < mine.end * kTapGroup; ++j) {
      sum += squared ? at[j] * at[j] : std::abs(at[j]);
      at[j] = tap_value(normalization, at[j]);
    }
    sums[lane] = sum;
  });
  join_neighbours(warp, sums, source.part_bits, [](A a, A b) { return a + b; });
  warp.each([&](int lane) {
    const A norm = squared ? std::sqrt(sums[lane]) : sums[lane];
    stats[lane] = {norm, A(1) / (norm + static_cast<A>(kNormEpsilon))};
    if (!has_norm(normalization) || !lanes[lane].real)
      stats[lane] = {A(0), lanes[lane].real ? A(1) : A(0)};
  });
}

/// put(j, values) for a lane's taps, four from j on, after DropConnect, from
/// what softmax_lanes or norm_lanes left.
template <class A, class Put>
SEQCONV_DEVICE void tap_groups_of(
    const TapSource& source,
    const LogitRows<A>& logits,
    const LaneRow& mine,
    const TapRow& row,
    const RowStats<A>& stats,
    const Put& put) {
  DropFactors<A> drop(source, row, mine.begin);
  for_groups(logits, mine, [&](int j, A(&w)[kTapGroup], A*) {
    SEQCONV_UNROLL
    for (A& value : w)
      value *= stats.scale;
    drop.apply(j, w);
    put(j, w);
  });
}

/// Phases: put(i, j, values) for the taps of row i, i < count, after
/// DropConnect, four from j on (some beyond K), and stats[i] unless null. Rows
/// of logits pass through `logits`; put may write where row i of logits has the
/// same elements.
template <class S, class A, class Block, class RowOf, class Put>
SEQCONV_DEVICE void make_taps(
    Block& block,
    const TapSource& source,
    int count,
    const RowOf& row_of,
    const LogitRows<A>& logits,
    std::type_identity_t<RowStats<A>>* stats,
    const Put& put) {
  for_logit_rows<S>(
      block,
      source,
      count,
      row_of,
      logits,
      [&](auto& warp, auto& lanes, int first) {
        Lanes<RowStats<A>> of;
        if (source.normalization == Normalization::kSoftmax)
          softmax_lanes(warp, source, logits, lanes, of);
        else
          norm_lanes(warp, source, logits, lanes, of);
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
              [&](int j, const A(&w)[kTapGroup]) { put(i, j, w); });
        });
      });
}

/// First half of the backward pass of a lane's groups: gradients of taps after
/// DropConnect -> before it; gives its part of the row's sum. With a softmax,
/// taps take the place of logits.
template <class A>
SEQCONV_DEVICE A dot_groups(
    const TapSource& source,
    const LogitRows<A>& logits,
    const LaneRow& mine,
    const TapRow& row,
    const RowStats<A>& stats,
    A* grads) {
  const bool softmax = source.normalization == Normalization::kSoftmax;
  const bool absolute = is_absolute(source.normalization);
  DropFactors<A> drop(source, row, mine.begin);
  A dot = 0;
  for_groups(logits, mine, [&](int j, A(&w)[kTapGroup], A* at) {
    A g[kTapGroup];
    load_wide<kTapGroup>(grads + j, g);
    SEQCONV_UNROLL
    for (int e = 0; e < kTapGroup; ++e)
      if (j + e >= source.kernel_size)
        g[e] = A(0);
    drop.apply(j, g);
    store_narrow<kTapGroup>(grads + j, g);
    if (softmax) {
      SEQCONV_UNROLL
      for (A& value : w)
        value = exp_of_negative(value - stats.shift) * stats.scale;
      store_narrow<kTapGroup>(at, w);
    }
    SEQCONV_UNROLL
    for (int e = 0; e < kTapGroup; ++e)
      dot += g[e] * (absolute ? std::abs(w[e]) : w[e]);
  });
  return dot;
}

/// Second half: gradients of taps -> of logits.
template <class A>
SEQCONV_DEVICE void gradient_groups(
    const TapSource& source,
    const LogitRows<A>& logits,
    const LaneRow& mine,
    const TapRow& row,
    const RowStats<A>& stats,
    A dot,
    A* grads) {
  if (source.normalization != Normalization::kSoftmax) {
    const A* const at = logits.at + mine.row * logits.pitch;
    SEQCONV_NO_UNROLL
    for (int j = mine.begin * kTapGroup; j < mine.end * kTapGroup; ++j)
      grads[j] = j >= row.begin && j < row.end
          ? logit_gradient(source.normalization, stats, at[j], grads[j], dot)
          : A(0);
    return;
  }
  for_groups(logits, mine, [&](int j, A(&w)[kTapGroup], A*) {
    A g[kTapGroup];
    load_wide<kTapGroup>(grads + j, g);
    SEQCONV_UNROLL
    for (int e = 0; e < kTapGroup; ++e)
      g[e] = j + e >= row.begin && j + e < row.end ? w[e] * (g[e] - dot) : A(0);
    store_narrow<kTapGroup>(grads + j, g);
  });
}

/// Phases: the gradients of taps -> of logits, in place: grads + i * pitch
/// of row i, on a multiple of 16 bytes.
template <class S, class A, class Block, class RowOf, class StatsOf>
SEQCONV_DEVICE void taps_backward(
    Block& block,
    const TapSource& source,
    int count,
    const RowOf& row_of,
    const StatsOf& stats_of,
    const LogitRows<A>& logits,
    A* grads,
    int grad_pitch) {
  for_logit_rows<S>(
      block,
      source,
      count,
      row_of,
      logits,
      [&](auto& warp, auto& lanes, int first) {
        const auto each = [&](auto&& f) {
          warp.each([&](int lane) {
            const LaneRow mine = lanes[lane];
            const int i = first + mine.row;
            if (mine.begin < mine.end)
              f(lane,
                mine,
                row_of(i, source.renormalize_edges),
                stats_of(i),
                grads + i * grad_pitch);
          });
        };
        Lanes<A> dots = {};
        each([&](int lane, auto mine, auto row, auto stats, A* grad) {
          dots[lane] = dot_groups(source, logits, mine, row, stats, grad);
        });
        join_neighbours(warp, dots, source.part_bits, [](A a, A b) {
          return a + b;
        });
        each([&](int lane, auto mine, auto row, auto stats, A* grad) {
          gradient_groups(source, logits, mine, row, stats, dots[lane], grad);
        });
      });
}

}  // namespace seqconv::kernels::cuda
