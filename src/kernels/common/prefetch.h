#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/common/cache_line.h"

namespace seqconv::kernels {

/// Rows of tensors that are needed after the tile at hand: brought into the
/// caches together with the work on the tile's own rows, for many reads at once
/// would only wait for one another.
class PrefetchRows {
 public:
  /// Rows of `width` elements, `stride` elements apart.
  template <class S>
  void add(const S* first, int64_t stride, int64_t width, int64_t rows) {
    constexpr auto kSize = static_cast<int64_t>(sizeof(S));
    add_bytes(
        reinterpret_cast<const char*>(first),
        stride * kSize,
        width * kSize,
        rows);
  }

  /// Part number `part` of `parts` equal parts of all rows.
  PrefetchRows part(int64_t part, int64_t parts) const;

  /// Prefetches a row of each and goes on to the next, within loops whose
  /// registers a call would cost. Most rows have kLines lines.
  template <int kLines, OwnCache kCache = OwnCache::kFirst>
  [[gnu::always_inline]] void next_row() {
    for (int n = 0; n < count_; ++n) {
      Rows& of = tensors_[static_cast<size_t>(n)];
      if (of.rows <= 0)
        continue;
      prefetch<kLines, kCache>(of.first, of.lines);
      of.first += of.stride;
      --of.rows;
    }
  }

 private:
  static constexpr int kMaxTensors = 8;
  struct Rows {
    const char* first;
    int64_t stride;
    int64_t lines;  ///< of a row
    int64_t rows;
  };

  /// Prefetches a row of `lines`, mostly kLines.
  template <int kLines, OwnCache kCache>
  [[gnu::always_inline]] static void prefetch(const char* row, int64_t lines) {
    if (lines == kLines)
      prefetch_lines<kCache>(row, kLines * kCacheLine);
    else
      prefetch_lines<kCache>(row, lines * kCacheLine);
  }
  void
  add_bytes(const char* first, int64_t stride, int64_t bytes, int64_t rows);

  std::array<Rows, kMaxTensors> tensors_;
  int count_ = 0;
};

}  // namespace seqconv::kernels
