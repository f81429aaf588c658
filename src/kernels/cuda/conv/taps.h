#pragma once

#include <type_traits>

#include "base/random.h"
#include "kernels/cuda/common/launches.h"
#include "kernels/cuda/conv.h"

/// Rows of logits between global and shared memory, where neighbouring
/// threads take neighbouring elements, and how the lanes of a warp share them.
namespace seqconv::internal::kernels::cuda {

/// The logits of a call, where element e of [H, K] or [B, T, H, K] is also
/// number e for DropConnect.
struct TapSource {
  Logits logits;
  int64_t batch_stride = 0;  ///< elements; 0 where all positions share logits
  int step_stride = 0;
  int kernel_size = 1;
  int lane_bits = 0;  ///< 2^so many threads copy a row
  int part_bits = 0;  ///< 2^so many threads share a row, neighbours in a warp
  int padding_left = 0;
  bool softmax = true;
  bool renormalize_edges = false;
  float scale = 1;  ///< of kept taps
  uint32_t threshold = 0;
  const int64_t* seed = nullptr;
  const uint8_t* mask = nullptr;
  bool per_row = false;  ///< taps differ between positions

  SEQCONV_HD int64_t row(int64_t b, int64_t t, int64_t h) const {
    return b * batch_stride + t * step_stride + h * kernel_size;
  }
};

/// One row of logits: where it begins, and which of its taps count (the others
/// are zero). Without any, the position is not real.
struct TapRow {
  int64_t base = 0;
  int begin = 0;
  int end = 0;
};

/// The row of logits at element `base`, for position t of `valid`.
SEQCONV_HD TapRow tap_row(const TapSource& source, int64_t base, int64_t t, int64_t valid) {
  if (t < 0 || t >= valid)
    return {0, 0, 0};
  const int64_t K = source.kernel_size, P = source.padding_left;
  if (!source.renormalize_edges)
    return {base, 0, source.kernel_size};
  return {
      base,
      static_cast<int>(max<int64_t>(0, P - t)),
      static_cast<int>(min<int64_t>(K, valid - t + P))};
}

/// The maximum of a row and 1 / sum of exp; without a softmax 0 and 1. A row
/// that is not real has the scale 0.
struct alignas(8) RowStats {
  float shift;
  float scale;
};

/// Elements that a thread takes at once.
inline constexpr int kTapGroup = 4;
SEQCONV_HD constexpr int tap_groups(int kernel_size) {
  return chunks_of(kernel_size, kTapGroup);
}
/// Elements from one row of logits to the next: an odd number of groups, so
/// that neighbouring rows begin in different banks.
SEQCONV_HD constexpr int logit_pitch(int kernel_size) {
  return (tap_groups(kernel_size) | 1) * kTapGroup;
}
/// Rows of logits in shared memory, on multiples of 16 bytes: room for
/// `rows` of them, `pitch` elements (a multiple of kTapGroup) apart.
struct LogitRows {
  float* at;
  int pitch;
  int rows;
};

/// use(r, j, load(r, j)) for the elements of `count` rows, the whole last group
/// included, by neighbouring threads for neighbouring elements; as load_ahead.
template <class Load, class Use>
SEQCONV_DEVICE void for_elements(
    int thread, const TapSource& source, int count, const Load& load, const Use& use) {
  const int width = tap_groups(source.kernel_size) * kTapGroup;
  const int lanes = 1 << source.lane_bits;
  SEQCONV_NO_UNROLL
  for (int j = thread & (lanes - 1); j < width; j += lanes)
    load_ahead<4>(
        thread >> source.lane_bits,
        count,
        kThreads >> source.lane_bits,
        [&](int r) { return load(r, j); },
        [&](int r, auto value) { use(r, j, value); });
}

/// One phase: the logits of rows first .. first + count to `to`. Elements
/// that do not count leave every sum and maximum as it is. row_of(i, edges) is
/// row i, cut at edges or not.
template <class S, class Block, class RowOf>
SEQCONV_DEVICE void copy_logits(
    Block& block,
    const TapSource& source,
    int first,
    int count,
    const RowOf& row_of,
    const LogitRows& to) {
  const float none = source.softmax ? -INFINITY : 0.0f;
  const auto copy = [&]<class R, bool kEdges>(int thread) {
    for_elements(
        thread,
        source,
        count,
        [&](int r, int j) {
          const TapRow row = row_of(first + r, kEdges);
          const R* const from = static_cast<const R*>(source.logits.data) + row.base + j;
          R value = narrow<R>(none);
          if (r < count && j < row.end && (!kEdges || j >= row.begin))
            value = *from;
          return value;
        },
        [&](int r, int j, R value) { to.at[r * to.pitch + j] = widen(value); });
  };
  block.each([&](int thread) {
    with_storage<S>(source.logits.storage, [&](auto type) {
      using R = decltype(type);
      if (source.renormalize_edges)
        copy.template operator()<R, true>(thread);
      else
        copy.template operator()<R, false>(thread);
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
SEQCONV_DEVICE LaneRow
lane_row(const TapSource& source, int n, int first, int count, const RowOf& row_of) {
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

/// Phases: f(warp, lanes, first) for `count` rows, as many at a time as
/// `logits` holds, which has their logits then, and of those as many as a warp
/// has lanes for; lanes[lane] is its LaneRow, rows from `first` on.
template <class S, class Block, class RowOf, class F>
SEQCONV_DEVICE void for_logit_rows(
    Block& block,
    const TapSource& source,
    int count,
    const RowOf& row_of,
    const LogitRows& logits,
    const F& f) {
  for (int first = 0; first < count; first += logits.rows) {
    const int rows = min(logits.rows, count - first);
    copy_logits<S>(block, source, first, rows, row_of, logits);
    block.warps([&](auto& warp) {
      SEQCONV_NO_UNROLL
      for (int n = warp.index() * kWarp; n < rows << source.part_bits; n += kThreads) {
        Lanes<LaneRow> lanes;
        warp.each([&](int lane) { lanes[lane] = lane_row(source, n + lane, first, rows, row_of); });
        f(warp, lanes, first);
      }
    });
  }
}

/// g(j, values, where they lie) for the groups of a lane, the four elements
/// from j on.
template <class G>
SEQCONV_DEVICE void for_groups(const LogitRows& logits, const LaneRow& mine, const G& g) {
  SEQCONV_NO_UNROLL
  for (int q = mine.begin; q < mine.end; ++q) {
    float* const at = logits.at + mine.row * logits.pitch + q * kTapGroup;
    float values[kTapGroup];
    load_wide<kTapGroup>(at, values);
    g(q * kTapGroup, values, at);
  }
}

/// DropConnect's factors of the groups of a row, one group after the other from
/// group q on. Elements count in the whole tensor: a group may lie in two
/// blocks of Philox words.
class DropFactors {
 public:
  SEQCONV_DEVICE DropFactors(const TapSource& source, const TapRow& row, int q)
      : source_(source), row_(row) {
    if (source.seed != nullptr)
      words_ = block(row.base / kTapGroup + q);
  }
  /// Multiplies the values of elements j on, the next group.
  SEQCONV_DEVICE void apply(int j, float (&values)[kTapGroup]) {
    const float scale = source_.scale;
    if (source_.seed != nullptr) {
      const auto after = block((row_.base + j) / kTapGroup + 1);
      const int skipped = static_cast<int>(row_.base % kTapGroup);
      // A word for every element, without an index that is not constant.
      unroll<kTapGroup>([&](int s) {
        if (s == skipped)
          unroll<kTapGroup>([&](int e) {
            const auto i = static_cast<size_t>((s + e) % kTapGroup);
            const uint32_t word = s + e < kTapGroup ? words_[i] : after[i];
            values[e] *= word >= source_.threshold ? scale : 0.0f;
          });
      });
      words_ = after;
    } else if (source_.mask != nullptr) {
      unroll<kTapGroup>([&](int e) {
        if (j + e >= row_.begin && j + e < row_.end)
          values[e] *= source_.mask[row_.base + j + e] != 0 ? scale : 0.0f;
      });
    }
  }

 private:
  SEQCONV_DEVICE std::array<uint32_t, kTapGroup> block(int64_t n) const {
    return philox(static_cast<uint64_t>(*source_.seed), static_cast<uint64_t>(n));
  }

  const TapSource& source_;
  const TapRow& row_;
  std::array<uint32_t, 4> words_ = {};
};

/// One phase: rows of gradients to the logits' gradient, where row i goes
/// to its element address_of(i); not where that is negative.
template <class S, class Block, class AddressOf>
SEQCONV_DEVICE void write_rows(
    Block& block,
    const TapSource& source,
    int count,
    const float* grads,
    int grad_pitch,
    void* to,
    const AddressOf& address_of) {
  with_storage<S>(source.logits.storage, [&](auto type) {
    using R = decltype(type);
    block.each([&](int thread) {
      for_elements(
          thread,
          source,
          count,
          [&](int r, int j) { return r < count ? grads[r * grad_pitch + j] : 0.0f; },
          [&](int r, int j, float grad) {
            const int64_t base = address_of(r);
            if (base >= 0 && j < source.kernel_size)
              static_cast<R*>(to)[base + j] = narrow<R>(grad);
          });
    });
  });
}

}  // namespace seqconv::internal::kernels::cuda
