#pragma once

#include "kernels/cuda/conv_taps.h"

/// Rows of logits between global and shared memory, where neighbouring
/// threads take neighbouring elements, and how the lanes of a warp share them.
namespace seqconv::kernels::cuda {

/// Rows of logits in shared memory, on multiples of 16 bytes: room for
/// `rows` of them, `pitch` elements (a multiple of kTapGroup) apart.
template <class A>
struct LogitRows {
  A* at;
  int pitch;
  int rows;
};

/// Elements whose loads a thread has under way.
inline constexpr int kElementsAtOnce = 4;

/// f(r, j) for the elements of `count` rows, the whole last group included, by
/// neighbouring threads for neighbouring elements: first(r, j, i) for some at
/// once, so that loads do not wait for each other (r may lie beyond), then
/// second.
template <class First, class Second>
SEQCONV_DEVICE void for_elements(
    int thread,
    int threads,
    const TapSource& source,
    int count,
    const First& first,
    const Second& second) {
  const int width = tap_groups(source.kernel_size) * kTapGroup;
  const int lanes = 1 << source.lane_bits, step = threads >> source.lane_bits;
  SEQCONV_NO_UNROLL
  for (int j = thread & (lanes - 1); j < width; j += lanes) {
    SEQCONV_NO_UNROLL
    for (int r0 = thread >> source.lane_bits; r0 < count;
         r0 += kElementsAtOnce * step) {
      SEQCONV_UNROLL
      for (int i = 0; i < kElementsAtOnce; ++i)
        first(r0 + i * step, j, i);
      SEQCONV_UNROLL
      for (int i = 0; i < kElementsAtOnce; ++i)
        if (r0 + i * step < count)
          second(r0 + i * step, j, i);
    }
  }
}

/// A thread's part of copy_logits, with rows cut at edges or not.
template <class R, bool kEdges, class A, class RowOf>
SEQCONV_DEVICE void copy_logit_elements(
    int thread,
    int threads,
    const TapSource& source,
    int first,
    int count,
    const RowOf& row_of,
    const LogitRows<A>& to) {
  using Sum = AccumulatorOf<R>;
  const Sum none = source.normalization == Normalization::kSoftmax
      ? static_cast<Sum>(-INFINITY)
      : Sum(0);
  R values[kElementsAtOnce];
  for_elements(
      thread,
      threads,
      source,
      count,
      [&](int r, int j, int i) {
        const TapRow row = row_of(first + r, kEdges);
        const R* const from =
            static_cast<const R*>(source.logits.data) + row.base + j;
        values[i] = Narrow<R>::from(none);
        if (r < count && j < row.end && (!kEdges || j >= row.begin))
          values[i] = *from;
      },
      [&](int r, int j, int i) {
        to.at[r * to.pitch + j] = static_cast<A>(widen(values[i]));
      });
}

/// One phase: the logits of rows first .. first + count to `to`. Elements
/// that do not count leave every sum and maximum as it is. row_of(i, edges) is
/// row i, cut at edges or not.
template <class S, class A, class Block, class RowOf>
SEQCONV_DEVICE void copy_logits(
    Block& block,
    const TapSource& source,
    int first,
    int count,
    const RowOf& row_of,
    const LogitRows<A>& to) {
  block.each([&](int thread) {
    const int threads = block.threads();
    with_storage<S>(source.logits.storage, [&](auto type) {
      const auto copy = [&](auto edges) {
        copy_logit_elements<decltype(type), decltype(edges)::value>(
            thread,
            threads,
            source,
            first,
            count,
            row_of,
            to);
      };
      if (source.renormalize_edges)
        copy(std::true_type{});
      else
        copy(std::false_type{});
    });
  });
}

/// What a lane of a warp does: groups [begin, end) of row `row`; none where
/// rows are used up.
struct LaneRow {
  int row = 0;
  int begin = 0;
  int end = 0;
  bool real = false;  ///< has taps that count
};
template <class RowOf>
SEQCONV_DEVICE LaneRow lane_row(
    const TapSource& source,
    int n,
    int first,
    int count,
    const RowOf& row_of) {
  const int groups = tap_groups(source.kernel_size);
  const int parts = 1 << source.part_bits, row = n >> source.part_bits;
  const int each = (groups + parts - 1) >> source.part_bits;
  LaneRow mine;
  if (row >= count)
    return mine;
  mine.row = row;
  mine.begin = min((n & (parts - 1)) * each, groups);
  mine.end = min(mine.begin + each, groups);
  mine.real = row_of(first + row, /*edges=*/false).end > 0;
  return mine;
}

/// One phase: f(warp, lanes) for rows first .. first + count, as many as a warp
/// has lanes for at a time; lanes[lane] is its LaneRow, rows from `first` on.
template <class Block, class RowOf, class F>
SEQCONV_DEVICE void for_lanes(
    Block& block,
    const TapSource& source,
    int first,
    int count,
    const RowOf& row_of,
    const F& f) {
  block.warps([&](auto& warp) {
    SEQCONV_NO_UNROLL
    for (int n = warp.index() * kWarp; n < count << source.part_bits;
         n += block.threads()) {
      Lanes<LaneRow> lanes;
      warp.each([&](int lane) {
        lanes[lane] = lane_row(source, n + lane, first, count, row_of);
      });
      f(warp, lanes);
    }
  });
}

/// Phases: f(warp, lanes, first) as for_lanes, for `count` rows, as many at a
/// time as `logits` holds, which has their logits then.
template <class S, class A, class Block, class RowOf, class F>
SEQCONV_DEVICE void for_logit_rows(
    Block& block,
    const TapSource& source,
    int count,
    const RowOf& row_of,
    const LogitRows<A>& logits,
    const F& f) {
  for (int first = 0; first < count; first += logits.rows) {
    const int rows = min(logits.rows, count - first);
    copy_logits<S>(block, source, first, rows, row_of, logits);
    for_lanes(block, source, first, rows, row_of, [&](auto& warp, auto& lanes) {
      f(warp, lanes, first);
    });
  }
}

/// g(j, values, where they lie) for the groups of a lane, the four elements
/// from j on.
template <class A, class G>
SEQCONV_DEVICE void
for_groups(const LogitRows<A>& logits, const LaneRow& mine, const G& g) {
  SEQCONV_NO_UNROLL
  for (int q = mine.begin; q < mine.end; ++q) {
    A* const at = logits.at + mine.row * logits.pitch + q * kTapGroup;
    A values[kTapGroup];
    load_wide<kTapGroup>(at, values);
    g(q * kTapGroup, values, at);
  }
}

/// DropConnect's factors of the groups of a row, one group after the other from
/// group q on. Elements count in the whole tensor: a group may lie in two
/// blocks of Philox words.
template <class A>
class DropFactors {
 public:
  SEQCONV_DEVICE DropFactors(const TapSource& source, const TapRow& row, int q)
      : source_(source), row_(row) {
    if (source.seed != nullptr)
      words_ = philox(
          static_cast<uint64_t>(*source.seed),
          static_cast<uint64_t>(row.base / kTapGroup + q));
  }
  /// Multiplies the values of elements j on, the next group.
  SEQCONV_DEVICE void apply(int j, A (&values)[kTapGroup]) {
    const A scale = static_cast<A>(source_.scale);
    if (source_.seed != nullptr) {
      const auto after = philox(
          static_cast<uint64_t>(*source_.seed),
          static_cast<uint64_t>((row_.base + j) / kTapGroup + 1));
      const int skipped = static_cast<int>(row_.base % kTapGroup);
      SEQCONV_UNROLL
      for (int e = 0; e < kTapGroup; ++e) {
        uint32_t word = 0;
        SEQCONV_UNROLL
        for (int i = e; i < e + kTapGroup; ++i)
          if (i - e == skipped)
            word = i < kTapGroup ? words_[static_cast<size_t>(i)]
                                 : after[static_cast<size_t>(i - kTapGroup)];
        values[e] *= word >= source_.threshold ? scale : A(0);
      }
      words_ = after;
    } else if (source_.mask != nullptr) {
      SEQCONV_UNROLL
      for (int e = 0; e < kTapGroup; ++e)
        if (j + e >= row_.begin && j + e < row_.end)
          values[e] *= source_.mask[row_.base + j + e] != 0 ? scale : A(0);
    }
  }

 private:
  const TapSource& source_;
  const TapRow& row_;
  std::array<uint32_t, 4> words_ = {};
};

/// One phase: rows of gradients to the logits' gradient, where row i goes
/// to its element to_of(i); not where that is negative.
template <class S, class A, class Block, class ToOf>
SEQCONV_DEVICE void write_rows(
    Block& block,
    const TapSource& source,
    int count,
    const A* grads,
    int grad_pitch,
    void* to,
    const ToOf& to_of) {
  with_storage<S>(source.logits.storage, [&](auto type) {
    using R = decltype(type);
    block.each([&](int thread) {
      for_elements(
          thread,
          block.threads(),
          source,
          count,
          [](int, int, int) {},
          [&](int r, int j, int) {
            const int64_t base = to_of(r);
            if (base >= 0 && j < source.kernel_size)
              static_cast<R*>(to)[base + j] =
                  Narrow<R>::from(grads[r * grad_pitch + j]);
          });
    });
  });
}

}  // namespace seqconv::kernels::cuda
