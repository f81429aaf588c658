#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "kernels/common/cache_line.h"
#include "kernels/conv.h"

/// Cutting tensors into tiles. Where the cuts are depends on sizes alone.
namespace seqconv::internal::kernels {

constexpr int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

/// Rows of a tile: enough that the K-1 rows of its halo do not dominate.
constexpr int64_t tile_rows(int64_t kernel_size) {
  return 64 * std::max<int64_t>(1, ceil_div(kernel_size, 64));
}

/// Items a thread should take at once so that starting it is worth while.
constexpr int64_t grain_for(int64_t operations_per_item) {
  return 1 + 100000 / std::max<int64_t>(1, operations_per_item);
}

/// Aligned scratch memory, on the heap only when more than kInline elements
/// are asked for. Not initialised.
template <class A, int64_t kInline = 0>
class Scratch {
 public:
  explicit Scratch(int64_t count = 0) { reserve(count); }

  /// At least `count` elements. Returns whether it had to grow, which loses the
  /// content.
  bool reserve(int64_t count) {
    if (count <= capacity_)
      return false;
    heap_.reset(static_cast<A*>(
        ::operator new (static_cast<size_t>(count) * sizeof(A), std::align_val_t{kAlignment})));
    capacity_ = count;
    return true;
  }
  void fill_zero(int64_t count) { std::fill_n(data(), count, A(0)); }
  A* data() {
    if constexpr (kInline > 0)
      if (heap_ == nullptr)
        return inline_;
    return heap_.get();
  }

 private:
  static constexpr size_t kAlignment = 64;
  struct Free {
    void operator()(A* p) const { ::operator delete (p, std::align_val_t{kAlignment}); }
  };
  alignas(kInline > 0 ? kAlignment : alignof(A)) A inline_[kInline > 0 ? kInline : 1];
  std::unique_ptr<A, Free> heap_;
  int64_t capacity_ = kInline;
};

/// Zeros in rows [first, end) of `width` elements.
template <class S>
void zero_rows(S* data, int64_t stride, int64_t width, int64_t first, int64_t end) {
  for (int64_t t = first; t < end; ++t)
    std::fill_n(data + t * stride, width, S{});
}

/// Real rows of sequence b.
inline int64_t valid_rows(const int64_t* lengths, int64_t b, int64_t steps) {
  return lengths == nullptr ? steps : lengths[b];
}

/// Item number -> (sequence, tile, group of heads), groups fastest.
struct TileIndex {
  int64_t batch;
  int64_t tile;
  int64_t group;

  TileIndex(int64_t item, int64_t tiles, int64_t groups)
      : batch(item / groups / tiles), tile(item / groups % tiles), group(item % groups) {}
};

/// How a pass treats the caches, where it reads more than they hold.
struct CacheUse {
  bool prefetches = false;
  bool streams = false;  ///< stores go past them: they would drive out reads
};

/// Says it for a pass that reads so many elements of each of `rows` positions and
/// whose output is the tensor `out`, stored in runs of `run_channels` channels at
/// least. Streaming stores are those of whole lines.
template <class S>
CacheUse cache_use(
    const Execution& run, int64_t rows, int64_t elements, const S* out, int64_t run_channels) {
  constexpr auto kSize = static_cast<int64_t>(sizeof(S));
  const bool far = rows * elements * kSize >= run.streams_from;
  const bool whole =
      reinterpret_cast<uintptr_t>(out) % kCacheLine == 0 && run_channels * kSize % kCacheLine == 0;
  return {.prefetches = far, .streams = far && whole};
}

/// Says it for [B, T, C], whose runs are heads.
template <class Shape, class S>
CacheUse cache_use(const Execution& run, const Shape& shape, const S* out, int64_t elements) {
  return cache_use(run, shape.batch * shape.steps, elements, out, shape.head_channels());
}

}  // namespace seqconv::internal::kernels
