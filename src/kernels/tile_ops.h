#pragma once

#include <cstddef>
#include <cstdint>

#include "seqconv/kernels/bfloat16.h"
#include "seqconv/kernels/isa.h"

/// The inner loops of the kernels. They work on tiles: a few dozen rows (time)
/// of at most kTileBytes of channels, copied into dense buffers of the
/// accumulator type. Staging costs a copy and buys three things: rows that are
/// 2-4 KB apart no longer fight for the same cache sets (1.5x measured), edges
/// and padding become zero rows instead of branches, and bfloat16 is widened
/// once. Row pitches are multiples of kLaneBytes; lanes beyond the width are
/// zero.
///
/// The same source (tile_*_impl.h) is compiled once for each instruction set,
/// in a namespace of its own. It must not instantiate anything from the
/// standard library: the linker could pick such a copy for everybody.
namespace seqconv::kernels {

inline constexpr int64_t kLaneBytes = 64;
inline constexpr int64_t kTileBytes = 256;

/// One convolution tile: out[t] = init + sum_j taps[t][j] * x[t + j].
template <class A>
struct ConvTile {
  const A* x = nullptr;  ///< [rows + K - 1, pitch]
  int64_t pitch = 0;
  const A* taps = nullptr;  ///< row t at taps + t * tap_stride; 0: shared
  int64_t tap_stride = 0;
  int64_t kernel_size = 1;
  int64_t rows = 0;
  const A* init = nullptr;  ///< [pitch]
  A* out = nullptr;         ///< [rows, pitch]
};

/// Where the window of one position begins and ends, in rows of a tile: the
/// rows [begin, end), and two rows with a weight.
template <class A>
struct TileWindow {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t left = 0;
  int64_t right = 0;
  A left_weight = 0;
  A right_weight = 0;
};

template <class A>
struct TalkTile {
  const TileWindow<A>* windows = nullptr;
  int64_t count = 0;  ///< windows, and rows of `rows`
  int64_t pitch = 0;
};

/// S = storage type of a tensor, A = type of its tiles.
template <class S, class A>
struct RowOps {
  /// dst [rows, pitch] = src rows of `width`, lanes beyond it zero.
  void (*load)(
      const S* src,
      int64_t stride,
      int64_t rows,
      int64_t width,
      A* dst,
      int64_t pitch);
  /// The way back.
  void (*store)(
      const A* src,
      int64_t pitch,
      int64_t rows,
      int64_t width,
      S* dst,
      int64_t stride);
  /// acc[c] += sum_i taps[i] * src[i * stride + c] for c < width.
  void (*weighted_sum)(
      const S* src,
      int64_t stride,
      const A* taps,
      int64_t rows,
      A* acc,
      int64_t width);
};

template <class A>
struct TileOps {
  void (*convolve)(const ConvTile<A>& tile);
  /// sums[j] += sum_t <g[t], x[t + j]>, j < K: the gradient of shared taps.
  void (*shared_tap_gradient)(
      const A* x,
      const A* g,
      int64_t pitch,
      int64_t rows,
      int64_t kernel_size,
      double* sums);
  /// grad[t][j] += <g[t], x[t + j]>: the gradient of taps of their own.
  void (*tap_gradient)(
      const A* x,
      const A* g,
      int64_t pitch,
      int64_t rows,
      int64_t kernel_size,
      A* grad,
      int64_t grad_pitch);
  /// sums[c] += the column sums of g [rows, pitch].
  void (*column_sums)(const A* g, int64_t pitch, int64_t rows, double* sums);
  /// Softmax of each row over its first K lanes, the others become zero.
  void (*softmax)(A* rows, int64_t pitch, int64_t count, int64_t kernel_size);
  /// grad = w * (grad - <w, grad>), row by row.
  void (*softmax_backward)(const A* w, A* grad, int64_t pitch, int64_t count);
  /// a *= b, element by element.
  void (*multiply)(A* a, const A* b, int64_t count);
  /// sums [rows + 1, pitch]: row i is the sum of the first i rows of x.
  void (*prefix_sums)(const A* x, int64_t pitch, int64_t rows, A* sums);
  /// out[t] = scale * (sums[end] - sums[begin] + both weighted rows of x).
  void (*gather_windows)(
      const TalkTile<A>& tile,
      const A* x,
      const A* sums,
      A scale,
      A* out);
  /// The transpose: steps[begin] += g, steps[end] -= g, and both weighted rows
  /// are added to `edges`.
  void (*scatter_windows)(
      const TalkTile<A>& tile,
      const A* g,
      A* steps,
      A* edges);
  /// out[i] = scale * (edges[i] + steps[0] + .. + steps[i]).
  void (*finish_scatter)(
      const A* steps,
      const A* edges,
      int64_t pitch,
      int64_t rows,
      A scale,
      A* out);
  /// left[t] += <g[t], x[left]>, right[t] += <g[t], x[right]>.
  void (*edge_products)(
      const TalkTile<A>& tile,
      const A* g,
      const A* x,
      A* left,
      A* right);
};

template <class A>
const TileOps<A>& tile_ops(Isa isa);
template <class S, class A>
const RowOps<S, A>& row_ops(Isa isa);

}  // namespace seqconv::kernels
