#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

#include "kernels/tile_ops.h"
#include "seqconv/kernels/conv.h"

/// Cutting tensors into tiles. Where the cuts are depends on sizes alone.
namespace seqconv::kernels {

constexpr int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

/// `count` elements rounded up to whole lanes of any instruction set.
template <class A>
constexpr int64_t lane_pitch(int64_t count) {
  constexpr int64_t kLanes = kLaneBytes / static_cast<int64_t>(sizeof(A));
  return ceil_div(count, kLanes) * kLanes;
}

/// Channels of a tile (the last one of a head may have fewer).
template <class A>
inline constexpr int64_t kTileChannels = kTileBytes /
    static_cast<int64_t>(sizeof(A));

/// Pitch of the tiles of a head of R channels.
template <class A>
constexpr int64_t tile_pitch(int64_t head_channels) {
  return lane_pitch<A>(std::min(head_channels, kTileChannels<A>));
}

/// Rows of a tile: enough that the K-1 rows of its halo do not dominate.
constexpr int64_t tile_rows(int64_t kernel_size) {
  return 64 * std::max<int64_t>(1, ceil_div(kernel_size, 64));
}

/// Items a thread should take at once so that starting it is worth while.
constexpr int64_t grain_for(int64_t operations_per_item) {
  return 1 + 100000 / std::max<int64_t>(1, operations_per_item);
}

/// Aligned scratch memory. Not initialised.
template <class A>
class Scratch {
 public:
  explicit Scratch(int64_t count = 0) { reserve(count); }

  /// At least `count` elements; the content is lost when it has to grow.
  void reserve(int64_t count) {
    if (count <= capacity_)
      return;
    data_.reset(static_cast<A*>(::operator new (
        static_cast<size_t>(count) * sizeof(A),
        std::align_val_t{kLaneBytes})));
    capacity_ = count;
  }
  void fill_zero(int64_t count) { std::fill_n(data_.get(), count, A(0)); }
  A* data() { return data_.get(); }

 private:
  struct Free {
    void operator()(A* p) const {
      ::operator delete (p, std::align_val_t{kLaneBytes});
    }
  };
  std::unique_ptr<A, Free> data_;
  int64_t capacity_ = 0;
};

/// Some channels of one sequence: rows `stride` apart, of which the first
/// `valid` are real and the others count as zero.
template <class S>
struct Plane {
  S* data = nullptr;
  int64_t stride = 0;
  int64_t width = 0;
  int64_t valid = 0;

  Plane channels(int64_t first, int64_t count) const {
    return {data + first, stride, count, valid};
  }
};

/// The channels of `head` of sequence `batch` in a tensor [B, T, C].
template <class S, class Shape>
Plane<S> head_plane(
    S* tensor,
    const Shape& shape,
    int64_t batch,
    int64_t head,
    int64_t valid) {
  const int64_t R = shape.head_channels();
  S* const data = tensor + batch * shape.steps * shape.channels + head * R;
  return {data, shape.channels, R, valid};
}

/// Copies rows [first, first + rows) of a plane, zero where there are none.
template <class S, class A>
void stage(
    const RowOps<std::remove_const_t<S>, A>& ops,
    const Plane<S>& plane,
    int64_t first,
    int64_t rows,
    A* out,
    int64_t pitch) {
  const int64_t begin = std::clamp<int64_t>(-first, 0, rows);
  const int64_t end = std::clamp<int64_t>(plane.valid - first, begin, rows);
  std::fill_n(out, begin * pitch, A(0));
  if (end > begin)
    ops.load(
        plane.data + (first + begin) * plane.stride,
        plane.stride,
        end - begin,
        plane.width,
        out + begin * pitch,
        pitch);
  std::fill_n(out + end * pitch, (rows - end) * pitch, A(0));
}

/// Zeros in rows [first, first + rows) of a plane.
template <class S>
void zero_rows(const Plane<S>& plane, int64_t first, int64_t rows) {
  for (int64_t t = first; t < first + rows; ++t)
    std::fill_n(plane.data + t * plane.stride, plane.width, S{});
}

/// Real rows of sequence b.
inline int64_t valid_rows(const int64_t* lengths, int64_t b, int64_t steps) {
  return lengths == nullptr ? steps : lengths[b];
}

/// Item number -> (batch, tile, head), heads fastest.
struct TileIndex {
  int64_t batch;
  int64_t tile;
  int64_t head;

  TileIndex(int64_t item, int64_t tiles, int64_t heads)
      : batch(item / heads / tiles),
        tile(item / heads % tiles),
        head(item % heads) {}
};

}  // namespace seqconv::kernels
