#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/bfloat16.h"
#include "kernels/conv.h"
#include "kernels/isa.h"

/// The inner loops of the kernels, on some rows (time) of some channels. Rows
/// are read where they lie in the tensors; sums are of the type A, tensors of
/// the type S. The loops are written once, with Highway, in *-inl.h and
/// compiled for each instruction set in conv_kernels.cpp.
namespace seqconv::internal::kernels {

/// Elements that the tap operations may read and write beyond the last row.
inline constexpr int64_t kTapSlack = 16;

/// Rows that a convolution finishes together, where it can.
inline constexpr int kRowBlock = 6;

/// Elements from the taps of one head to those of the next.
constexpr int64_t tap_pitch(int64_t kernel_size) {
  if (kernel_size <= 8)
    return kernel_size <= 4 ? 4 : 8;
  return (kernel_size + kTapSlack - 1) / kTapSlack * kTapSlack;
}

/// out[t] = bias + sum_r tap(t, r) * in[r], r = t .. t + K-1, for all
/// channels of some heads. Only rows r in [first, last) exist, the others count
/// as zero. Sums add up in ascending order of r, each tap before the added one.
template <class S, class A>
struct ConvTile {
  const S* in = nullptr;
  int64_t in_stride = 0;
  int64_t first = 0;
  int64_t last = 0;
  /// tap(t, r) at t * tap_t + r * tap_r: one for all channels of a head or, by
  /// channel, as many as there are.
  const A* taps = nullptr;
  int64_t tap_t = 0;
  int64_t tap_r = 0;
  int64_t head_stride = 0;  ///< from the taps of a head to those of the next
  bool by_channel = false;
  /// Not null: taps by channel that are added, that of (t, r) at (r - t) * added_r.
  const A* added = nullptr;
  int64_t added_r = 0;
  int64_t kernel_size = 1;
  int64_t rows = 0;
  int64_t heads = 1;
  int64_t channels = 0;     ///< of a head
  const A* bias = nullptr;  ///< [heads * channels] or null
  S* out = nullptr;
  int64_t out_stride = 0;
  /// Not null: the sums are added to these, [rows, heads * channels], or take their
  /// place, and nothing is written to `out`.
  A* sums = nullptr;
  bool adds = true;
  bool streaming = false;  ///< stores go past the caches
  int64_t ahead = 0;       ///< elements from what is read to what is prefetched;
                           ///< 0: nothing is
};

/// Elements between rows of stages, and most channels of one.
inline constexpr int64_t kStagePitch = 64;

/// Rows that are copied close together, as what they are summed in. Rows of
/// tensors are 2 or 4 KB apart and fight for the same cache sets.
template <class S>
struct StageTile {
  const S* in = nullptr;
  int64_t in_stride = 0;
  int64_t first = 0;  ///< rows outside [first, last) are zero
  int64_t last = 0;
  int64_t rows = 0;
  int64_t channels = 0;  ///< at most kStagePitch; zeros up to that
  int64_t ahead = 0;     ///< as ConvTile::ahead
};

/// Rows that another pass will need: one of them is fetched beside every row of
/// this one, so that neither waits for memory.
struct RowsAhead {
  const void* first = nullptr;
  int64_t stride = 0;  ///< bytes
  int64_t bytes = 0;   ///< of a row
};

/// Scalar products of rows g[t] with rows x[t + j], j < K: of stages, or of
/// whole vectors of channels.
template <class A>
struct ProductTile {
  const A* g = nullptr;  ///< [rows]
  int64_t g_stride = kStagePitch;
  const A* x = nullptr;  ///< [rows + tap_pitch(K) - 1]
  int64_t x_stride = kStagePitch;
  int64_t kernel_size = 1;
  int64_t rows = 0;
  int64_t channels = 0;
  bool add = false;       ///< to what is there, in tap_products
  RowsAhead logits = {};  ///< in tap_products
  RowsAhead grad_logits = {};
};

/// Sums of rows with weights: acc[c] += sum_i tap(i, c) * src[i * stride + c],
/// c < width, of rows one after the other.
template <class S, class A>
struct RowSum {
  const S* src = nullptr;
  int64_t stride = 0;
  int64_t rows = 0;
  const A* taps = nullptr;  ///< tap(i, c) at i * tap_r, by channel + c
  int64_t tap_r = 1;
  bool by_channel = false;
  const A* added = nullptr;  ///< null, or taps that are added at i * added_r + c
  int64_t added_r = 0;
  A* acc = nullptr;
  int64_t width = 0;
};

/// Rows of sums, and what they become: y = activation(acc + bias) + residual.
template <class S, class A>
struct RowEnd {
  const A* acc = nullptr;
  int64_t acc_stride = 0;
  const A* bias = nullptr;  ///< or null
  ConvActivation activation = ConvActivation::kNone;
  const S* residual = nullptr;  ///< rows as those of y, or null
  S* y = nullptr;
  int64_t stride = 0;
  int64_t rows = 1;
  int64_t width = 0;
  bool streaming = false;  ///< stores go past the caches: whole vectors, aligned
};

/// Rows with taps of every position and channel that are made together.
inline constexpr int64_t kChannelTapRows = 8;

/// Places of taps among others: an integer as wide as A.
template <class A>
using TapIndex = std::conditional_t<sizeof(A) == 4, int32_t, int64_t>;

/// Taps of heads, tap j of row t of head h at t * row_stride + h * head_stride
/// + j, and where those of their channels go.
template <class A>
struct SpreadTile {
  const A* taps = nullptr;
  int64_t row_stride = 0;
  int64_t head_stride = 0;
  int64_t rows = 0;
  int64_t head_channels = 1;
  int64_t channels = 0;  ///< of all heads
  int64_t kernel_size = 1;
  const TapIndex<A>* places = nullptr;  ///< tap_places()
  bool fetches = false;  ///< beside each row that of the next block, which is in no cache
  A* out = nullptr;      ///< [rows, K, pitch]
  int64_t pitch = 0;     ///< whole vectors of channels
};

/// Logits of rows of heads, and where their taps go: row by row, segments
/// of tap_pitch(K).
template <class L, class A>
struct TapTile {
  const L* logits = nullptr;
  int64_t logit_stride = 0;  ///< of rows
  int64_t rows = 0;
  int64_t heads = 0;
  int64_t kernel_size = 1;
  A* w = nullptr;
};

/// Taps made by softmax and gradients of taps, both as TapTile::w, and where
/// the gradients of the logits go.
template <class L, class A>
struct TapGradient {
  const A* w = nullptr;
  const A* grad = nullptr;
  L* out = nullptr;
  int64_t out_stride = 0;  ///< of rows
  int64_t rows = 0;
  int64_t heads = 0;
  int64_t kernel_size = 1;
};

/// Operations on tensors of type S with sums of type A.
template <class S, class A>
struct ConvKernels {
  int64_t lanes;  ///< of A in a vector
  void (*convolve)(const ConvTile<S, A>& tile);
  void (*weighted_sum)(const RowSum<S, A>& rows);
  void (*end_rows)(RowEnd<S, A> rows);
  /// Taps by channel: out[(t * K + j) * pitch + c] = tap j of row t of c's head.
  void (*spread)(const SpreadTile<A>& tile);
  void (*softmax)(TapTile<S, A> tile);
  /// Rounds results: a signalling NaN need not stay one. streaming: past the caches,
  /// where dst is aligned, and not seen by others before a later fence.
  void (*narrow)(const A* src, int64_t count, S* dst, bool streaming);
};

/// Those of backward passes alone: programs that make none are without them.
template <class S, class A>
struct ConvGradKernels {
  /// out [rows, kStagePitch].
  void (*stage)(const StageTile<S>& tile, A* out);
  /// out[t * out_stride + j] = <g[t], x[t + j]>; rows of at least tap_pitch(K).
  void (*tap_products)(const ProductTile<A>& tile, A* out, int64_t out_stride);
  /// sums[j] += sum_t <g[t], x[t + j]>.
  void (*shared_tap_products)(const ProductTile<A>& tile, double* sums);
  /// out[j * kStagePitch + c] = sum_t g[t][c] * x[t + j][c]; rows of out up to
  /// tap_pitch(K).
  void (*channel_products)(const ProductTile<A>& tile, A* out);
  /// The products of rows, as tap_products, of heads of R channels: those of head
  /// h at t * out_stride + h * tap_pitch(K) + j.
  void (*head_products)(const ProductTile<A>& tile, int64_t R, A* out, int64_t out_stride);
  /// grad_z[c] = grad_y[c] * silu'(z[c] + bias[c]); may be z.
  void (*silu_backward)(const A* z, const A* bias, const S* grad_y, A* grad_z, int64_t width);
  /// out = w (grad - <w, grad>), segment by segment.
  void (*softmax_backward)(TapGradient<S, A> tile);
};

template <class S, class A>
const ConvKernels<S, A>& conv_kernels(Isa isa);
template <class S, class A>
const ConvGradKernels<S, A>& conv_grad_kernels(Isa isa);

}  // namespace seqconv::internal::kernels
