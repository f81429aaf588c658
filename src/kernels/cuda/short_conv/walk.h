#pragma once

#include "kernels/cuda/short_conv/task.h"

/// Sums of taps times rows, for one position and for a run of them, in the same
/// order: they have the same bits.
namespace seqconv::internal::kernels::cuda {

/// There are no dynamic taps.
struct NoTaps {};

/// Outputs from inputs: tap j of a position meets the input (j - padding_left) D
/// rows behind it.
struct OfInputs {
  static constexpr bool kMirrored = false;

  /// V channels of a row, or false: it counts as zeros.
  template <int V, class Task>
  static SEQCONV_DEVICE bool load(
      const Task& task, const Span& span, int64_t row, int64_t c, float (&to)[V]) {
    if (row >= span.end)
      return false;
    if (row >= span.first) {
      load_wide<V>(task.x + task.element(row, c), to);
      return true;
    }
    if (task.past == nullptr || span.state < 0)
      return false;
    const int64_t L = task.past_rows(), place = L + row - span.first;
    load_wide<V>(task.past + task.element(span.state * L + place, c), to);
    return true;
  }
};

/// Gradients of inputs from those of sums, of type G: the taps of the positions
/// that met the input, the last one first.
template <class G>
struct OfGradients {
  static constexpr bool kMirrored = true;

  template <int V, class Task>
  static SEQCONV_DEVICE bool load(
      const Task& task, const Span& span, int64_t row, int64_t c, float (&to)[V]) {
    if (!span.holds(row))
      return false;
    load_wide<V>(static_cast<const G*>(task.gradient) + task.element(row, c), to);
    return true;
  }
};

/// Static taps j of V channels; zero where there are none.
template <int V, class Task>
SEQCONV_DEVICE void load_fixed(const Task& task, int j, int64_t c, float (&to)[V]) {
  if (task.fixed != nullptr) {
    load_wide<V>(task.fixed + task.element(j, c), to);
    return;
  }
  unroll<V>([&](int v) { to[v] = 0; });
}

/// Dynamic taps j .. j + 3 of a row for the head of a channel; zero outside 0 .. K-1.
template <class L, class Task>
SEQCONV_DEVICE void load_dynamic(
    const Task& task, int64_t row, int64_t head, int j, float (&to)[kTapPack]) {
  const int K = task.kernel_size;
  const L* const taps = static_cast<const L*>(task.dynamic.data) + (row * task.heads + head) * K;
  if (task.packs_taps) {
    load_wide<kTapPack>(taps + j, to);
    return;
  }
  unroll<kTapPack>([&](int i) { to[i] = j + i >= 0 && j + i < K ? widen(taps[j + i]) : 0.0f; });
}

/// The row that the walk of a position begins with, and its head.
template <class Source, class Task>
SEQCONV_DEVICE int64_t first_source(const Task& task, int64_t row) {
  const int left = Source::kMirrored ? task.kernel_size - 1 - task.padding_left : task.padding_left;
  return row - left * task.dilation;
}
template <class L, class Task>
SEQCONV_DEVICE int64_t head_of(const Task& task, int64_t c) {
  if constexpr (std::is_same_v<L, NoTaps>)
    return 0;
  else  // launches have fewer than 2^32 channels
    return static_cast<uint32_t>(c) / static_cast<uint32_t>(task.head_channels);
}

/// sum += V channels of a position, which may lie among the inputs before.
template <class L, class Source, int V, class Task>
SEQCONV_DEVICE void sum_position(
    const Task& task, const Span& span, int64_t row, int64_t c, float (&sum)[V]) {
  const int K = task.kernel_size;
  const int64_t head = head_of<L>(task, c);
  int64_t source = first_source<Source>(task, row);
  SEQCONV_NO_UNROLL
  for (int i = 0; i < K; ++i, source += task.dilation) {
    float in[V], tap[V];
    if (!Source::template load<V>(task, span, source, c, in))
      continue;
    const int j = Source::kMirrored ? K - 1 - i : i;
    load_fixed<V>(task, j, c, tap);
    if constexpr (!std::is_same_v<L, NoTaps>) {
      const int64_t of = Source::kMirrored ? source : row;
      const float more =
          widen(static_cast<const L*>(task.dynamic.data)[(of * task.heads + head) * K + j]);
      unroll<V>([&](int v) { tap[v] += more; });
    }
    unroll<V>([&](int v) { sum[v] += tap[v] * in[v]; });
  }
}

/// Sums of V channels of a run of positions of one sequence.
template <class L, class Source, int V, class Task>
class RunSums {
 public:
  float sums[kRunPositions][V];

  SEQCONV_DEVICE RunSums(const Task& of, const Span& sequence, const RunPlace<V>& run)
      : task(of),
        span(sequence),
        place(run),
        head(head_of<L>(of, run.channel)),
        first(first_source<Source>(of, run.row)) {
    unroll<kRunPositions>([&](int p) { unroll<V>([&](int v) { sums[p][v] = 0; }); });
    unroll<kRunPositions - 1>([&](int i) { load(i, i); });
    SEQCONV_NO_UNROLL
    for (int j = 0; j < task.kernel_size; j += kTapPack) {
      unroll<kTapPack>([&](int i) {
        if (j + i < task.kernel_size)
          load(kRunPositions - 1 + i, j + kRunPositions - 1 + i);
      });
      add_taps(j);
      unroll<kRunPositions - 1>(
          [&](int i) { unroll<V>([&](int v) { rows[i][v] = rows[i + kTapPack][v]; }); });
    }
  }

 private:
  static constexpr int kRows = kRunPositions - 1 + kTapPack;

  SEQCONV_DEVICE int64_t source(int number) const { return first + number * task.dilation; }
  SEQCONV_DEVICE void load(int i, int number) {
    if (!Source::template load<V>(task, span, source(number), place.channel, rows[i]))
      unroll<V>([&](int v) { rows[i][v] = 0; });
  }
  /// Adds the products of the walk's taps j .. j + 3; rows[p + i] is what tap
  /// j + i of position p meets.
  SEQCONV_DEVICE void add_taps(int j) {
    const int K = task.kernel_size;
    float fixed[kTapPack][V];
    unroll<kTapPack>([&](int i) {
      if (j + i < K)
        load_fixed<V>(task, Source::kMirrored ? K - 1 - j - i : j + i, place.channel, fixed[i]);
    });
    if constexpr (std::is_same_v<L, NoTaps>)
      unroll<kTapPack>([&](int i) {
        if (j + i < K)
          unroll<kRunPositions>([&](int p) { add(p, fixed[i], 0, rows[p + i]); });
      });
    else if constexpr (Source::kMirrored)
      add_of_sources(j, fixed);
    else
      add_of_positions(j, fixed);
  }
  /// Does so with dynamic taps of the positions.
  SEQCONV_DEVICE void add_of_positions(int j, const float (&fixed)[kTapPack][V]) {
    unroll<kRunPositions>([&](int p) {
      if (p >= place.count)
        return;
      float taps[kTapPack];
      load_dynamic<L>(task, place.row + p * task.dilation, head, j, taps);
      unroll<kTapPack>([&](int i) {
        if (j + i < task.kernel_size)
          add(p, fixed[i], taps[i], rows[p + i]);
      });
    });
  }
  /// Does so with those of the rows, of which the walk takes the last one first.
  SEQCONV_DEVICE void add_of_sources(int j, const float (&fixed)[kTapPack][V]) {
    unroll<kRows>([&](int r) {
      if (!span.holds(source(j + r)))
        return;
      float taps[kTapPack];
      load_dynamic<L>(task, source(j + r), head, task.kernel_size - kTapPack - j, taps);
      unroll<kTapPack>([&](int i) {
        if (r - i >= 0 && r - i < kRunPositions && j + i < task.kernel_size)
          add(r - i, fixed[i], taps[kTapPack - 1 - i], rows[r]);
      });
    });
  }
  SEQCONV_DEVICE void add(int p, const float (&fixed)[V], float more, const float (&in)[V]) {
    unroll<V>([&](int v) { sums[p][v] += (fixed[v] + more) * in[v]; });
  }

  const Task& task;
  const Span span;
  const RunPlace<V>& place;
  const int64_t head, first;
  float rows[kRows][V];
};

}  // namespace seqconv::internal::kernels::cuda
