#pragma once

#include "kernels/cuda/block.h"
#include "seqconv/base/random.h"
#include "seqconv/kernels/cuda/conv.h"

/// From raw weights to taps and back: the normalisations of normalization.h of
/// the CPU split into a statistic of a row and a function of an element, so
/// that many threads share a row and nothing is stored in between.
namespace seqconv::kernels::cuda {

/// The raw kernels of a call, where element e of [H, K] or [B, T, H, K] is also
/// number e for DropConnect.
struct TapSource {
  RawKernels raw;
  int64_t batch_stride = 0;  ///< elements; 0 where all positions share kernels
  int64_t step_stride = 0;
  int kernel_size = 1;
  int padding_left = 0;
  Normalization normalization = Normalization::kSoftmax;
  bool renormalize_edges = false;
  double scale = 1;  ///< of kept taps
  uint32_t threshold = 0;
  const int64_t* seed = nullptr;
  const uint8_t* mask = nullptr;

  SEQCONV_HD int64_t row(int64_t b, int64_t t, int64_t h) const {
    return b * batch_stride + t * step_stride + h * kernel_size;
  }
};

/// One kernel: where it begins, and which of its taps count (the others are
/// zero). Without any, the position is not real.
struct TapRow {
  int64_t base = 0;
  int begin = 0;
  int end = 0;
};

/// The kernel at raw element `base`, for position t of `valid`.
SEQCONV_HD TapRow
tap_row(const TapSource& source, int64_t base, int64_t t, int64_t valid) {
  if (t < 0 || t >= valid)
    return {0, 0, 0};
  const int64_t K = source.kernel_size, P = source.padding_left;
  if (!source.renormalize_edges)
    return {base, 0, source.kernel_size};
  return {
      base,
      static_cast<int>(most<int64_t>(0, P - t)),
      static_cast<int>(least<int64_t>(K, valid - t + P))};
}

/// softmax: the maximum and 1 / sum of exp; norms: the norm and 1 / (it + e).
template <class A>
struct alignas(2 * sizeof(A)) RowStats {
  A shift;
  A scale;
};

/// Threads that share a row.
inline constexpr int kParts = 4;

SEQCONV_HD bool has_norm(Normalization n) {
  return n == Normalization::kL1 || n == Normalization::kL2 ||
      n == Normalization::kAbsL1 || n == Normalization::kAbsL2;
}
SEQCONV_HD bool is_squared(Normalization n) {
  return n == Normalization::kL2 || n == Normalization::kAbsL2;
}
SEQCONV_HD bool is_absolute(Normalization n) {
  return n == Normalization::kAbsL1 || n == Normalization::kAbsL2;
}

/// The statistic of every kParts-th raw weight of a row, from `part` on.
template <class A>
SEQCONV_DEVICE RowStats<A>
part_stats(const TapSource& source, const TapRow& row, int part) {
  const auto raw = [&](int j) {
    return load_stored<A>(source.raw.data, source.raw.storage, row.base + j);
  };
  RowStats<A> stats = {A(0), A(0)};
  if (source.normalization == Normalization::kSoftmax) {
    stats.shift = static_cast<A>(-INFINITY);
    for (int j = row.begin + part; j < row.end; j += kParts)
      stats.shift = most(stats.shift, raw(j));
    // A part that is all minus infinity adds nothing to its row.
    const A shift =
        stats.shift > static_cast<A>(-INFINITY) ? stats.shift : A(0);
    for (int j = row.begin + part; j < row.end; j += kParts)
      stats.scale += std::exp(raw(j) - shift);
  } else if (has_norm(source.normalization)) {
    const bool squared = is_squared(source.normalization);
    for (int j = row.begin + part; j < row.end; j += kParts) {
      const A value = raw(j);
      stats.shift += squared ? value * value : std::abs(value);
    }
  }
  return stats;
}

template <class A>
SEQCONV_DEVICE RowStats<A> join_stats(
    Normalization normalization,
    const RowStats<A>* parts) {
  RowStats<A> all = parts[0];
  if (normalization == Normalization::kSoftmax) {
    for (int p = 1; p < kParts; ++p)
      all.shift = most(all.shift, parts[p].shift);
    A sum = 0;
    for (int p = 0; p < kParts; ++p)
      if (parts[p].scale != 0)  // a part may be empty
        sum += parts[p].scale * std::exp(parts[p].shift - all.shift);
    all.scale = A(1) / sum;
  } else if (has_norm(normalization)) {
    for (int p = 1; p < kParts; ++p)
      all.shift += parts[p].shift;
    if (is_squared(normalization))
      all.shift = std::sqrt(all.shift);
    all.scale = A(1) / (all.shift + static_cast<A>(kNormEpsilon));
  }
  return all;
}

/// Two phases: stats[i] of the rows row_of(i), i < count.
template <class A, class Block, class RowOf>
SEQCONV_DEVICE void make_stats(
    Block& block,
    const TapSource& source,
    int count,
    const RowOf& row_of,
    RowStats<A>* parts,
    RowStats<A>* stats) {
  block.each([&](int thread) {
    for (int i = thread; i < count * kParts; i += block.threads())
      parts[i] = part_stats<A>(source, row_of(i / kParts), i % kParts);
  });
  block.each([&](int thread) {
    for (int i = thread; i < count; i += block.threads())
      stats[i] = join_stats(source.normalization, parts + i * kParts);
  });
}

template <class A>
SEQCONV_HD A sign_of(A value) {
  return static_cast<A>((value > 0) - (value < 0));
}

template <class A>
SEQCONV_DEVICE A
tap_value(Normalization normalization, const RowStats<A>& stats, A w) {
  switch (normalization) {
    case Normalization::kNone:
      return w;
    case Normalization::kSoftmax:
      return std::exp(w - stats.shift) * stats.scale;
    case Normalization::kSigmoid:
      return A(1) / (A(1) + std::exp(-w));
    case Normalization::kTanh:
      return std::tanh(w);
    case Normalization::kSquare:
      return w * w;
    case Normalization::kAbs:
      return std::abs(w);
    case Normalization::kL1:
    case Normalization::kL2:
      return w * stats.scale;
    case Normalization::kAbsL1:
    case Normalization::kAbsL2:
      return std::abs(w) * stats.scale;
  }
  return w;
}

/// What a row sums up for its backward pass, from the gradient `g` of a tap.
template <class A>
SEQCONV_DEVICE A dot_term(Normalization normalization, A w, A tap, A g) {
  if (normalization == Normalization::kSoftmax)
    return tap * g;
  return has_norm(normalization)
      ? g * (is_absolute(normalization) ? std::abs(w) : w)
      : A(0);
}

/// Gradient of the raw weight w from that of its tap and the row's sum `dot`.
template <class A>
SEQCONV_DEVICE A raw_gradient(
    Normalization normalization,
    const RowStats<A>& stats,
    A w,
    A tap,
    A g,
    A dot) {
  switch (normalization) {
    case Normalization::kNone:
      return g;
    case Normalization::kSoftmax:
      return tap * (g - dot);
    case Normalization::kSigmoid:
      return g * tap * (A(1) - tap);
    case Normalization::kTanh:
      return g * (A(1) - tap * tap);
    case Normalization::kSquare:
      return g * A(2) * w;
    case Normalization::kAbs:
      return g * sign_of(w);
    default:
      break;
  }
  const A slope = is_squared(normalization)
      ? (stats.shift > 0 ? w / stats.shift : A(0))
      : sign_of(w);
  return (is_absolute(normalization) ? sign_of(w) : A(1)) * g * stats.scale -
      slope * dot * stats.scale * stats.scale;
}

/// Taps are visited in groups of four that share one block of Philox words;
/// a row of K begins anywhere in its first group.
SEQCONV_HD int tap_groups(int kernel_size) {
  return pieces_of(kernel_size + 3, 4);
}

/// emit(j, raw weight, tap, DropConnect's factor) for the taps of group q.
template <class A, class Emit>
SEQCONV_DEVICE void tap_group(
    const TapSource& source,
    const TapRow& row,
    const RowStats<A>& stats,
    int q,
    const Emit& emit) {
  const int first = 4 * q - static_cast<int>(row.base & 3);
  const A scale = static_cast<A>(source.scale);
  A factors[4] = {A(1), A(1), A(1), A(1)};
  if (source.seed != nullptr && row.end > row.begin) {
    const auto words = philox(
        static_cast<uint64_t>(*source.seed),
        static_cast<uint64_t>(row.base / 4 + q));
    SEQCONV_UNROLL
    for (int i = 0; i < 4; ++i)
      factors[i] =
          words[static_cast<size_t>(i)] >= source.threshold ? scale : A(0);
  }
  A raw[4] = {};
  SEQCONV_UNROLL
  for (int i = 0; i < 4; ++i) {
    const int j = first + i;
    if (j < row.begin || j >= row.end)
      continue;
    raw[i] = load_stored<A>(source.raw.data, source.raw.storage, row.base + j);
    if (source.mask != nullptr)
      factors[i] = source.mask[row.base + j] != 0 ? scale : A(0);
  }
  SEQCONV_UNROLL
  for (int i = 0; i < 4; ++i) {
    const int j = first + i;
    if (j < 0 || j >= source.kernel_size)
      continue;
    const bool counts = j >= row.begin && j < row.end;
    const A tap =
        counts ? tap_value(source.normalization, stats, raw[i]) : A(0);
    emit(j, raw[i], tap, counts ? factors[i] : A(1));
  }
}

/// One phase: put(i, j, value) for tap j of row i, after DropConnect.
template <class A, class Block, class RowOf, class StatsOf, class Put>
SEQCONV_DEVICE void fill_taps(
    Block& block,
    const TapSource& source,
    int count,
    const RowOf& row_of,
    const StatsOf& stats_of,
    const Put& put) {
  const int groups = tap_groups(source.kernel_size);
  block.each([&](int thread) {
    for (int n = thread; n < count * groups; n += block.threads()) {
      const int i = n / groups;
      tap_group<A>(
          source,
          row_of(i),
          stats_of(i),
          n % groups,
          [&](int j, A, A tap, A factor) { put(i, j, tap * factor); });
    }
  });
}

/// Two phases: the gradient of taps -> of raw weights, write(i, j, value).
/// grad(i, j) is a reference to the gradient of tap j of row i.
template <
    class A,
    class Block,
    class RowOf,
    class StatsOf,
    class Grad,
    class Write>
SEQCONV_DEVICE void taps_backward(
    Block& block,
    const TapSource& source,
    int count,
    const RowOf& row_of,
    const StatsOf& stats_of,
    const Grad& grad,
    A* dots,
    const Write& write) {
  const int groups = tap_groups(source.kernel_size);
  block.each([&](int thread) {
    for (int n = thread; n < count * kParts; n += block.threads()) {
      const int i = n / kParts;
      A dot = 0;
      for (int q = n % kParts; q < groups; q += kParts)
        tap_group<A>(
            source,
            row_of(i),
            stats_of(i),
            q,
            [&](int j, A w, A tap, A factor) {
              A& g = grad(i, j);
              g *= factor;
              dot += dot_term(source.normalization, w, tap, g);
            });
      dots[n] = dot;
    }
  });
  block.each([&](int thread) {
    for (int n = thread; n < count * kParts; n += block.threads()) {
      const int i = n / kParts;
      const TapRow row = row_of(i);
      A dot = 0;
      for (int p = 0; p < kParts; ++p)
        dot += dots[i * kParts + p];
      for (int q = n % kParts; q < groups; q += kParts)
        tap_group<A>(source, row, stats_of(i), q, [&](int j, A w, A tap, A) {
          const bool counts = j >= row.begin && j < row.end;
          write(
              i,
              j,
              counts ? raw_gradient(
                           source.normalization,
                           stats_of(i),
                           w,
                           tap,
                           grad(i, j),
                           dot)
                     : A(0));
        });
    }
  });
}

}  // namespace seqconv::kernels::cuda
