#pragma once

#include "kernels/cuda/common/launches.h"
#include "kernels/cuda/short_conv.h"
#include "kernels/cuda/short_conv/spans.h"

/// The passes of a short convolution are given this.
namespace seqconv::internal::kernels::cuda {

/// Positions of a thread, which lie D apart, so that they share inputs.
inline constexpr int kRunPositions = 8;
/// Taps that are read at once.
inline constexpr int kTapPack = 4;
/// Bytes of a row that a thread takes at once where it can.
inline constexpr int kColumnBytes = 4;

/// Element i of a tensor beside one of S.
template <class S>
SEQCONV_DEVICE float beside_at(const Beside& tensor, int64_t i) {
  if constexpr (sizeof(S) == 2) {
    if (tensor.storage == Storage::kFloat)
      return static_cast<const float*>(tensor.data)[i];
  }
  return widen(static_cast<const S*>(tensor.data)[i]);
}

template <class S>
struct ShortConvTask {
  using Storage = S;

  Sequences sequences;
  int64_t channels = 0;
  int64_t dilation = 1;
  int kernel_size = 1;
  int padding_left = 0;
  int64_t heads = 1;  ///< of dynamic taps
  int64_t head_channels = 1;
  const float* fixed = nullptr;  ///< [K, C], static taps of every channel, or null
  Beside dynamic;
  bool packs_taps = false;  ///< kTapPack dynamic taps are read at once
  Beside bias;
  ConvEnd end;
  const S* x = nullptr;
  const S* past = nullptr;
  const S* grad_y = nullptr;
  const void* gradient = nullptr;  ///< of sums [B, T, C]: grad_y, or float behind an activation
  S* out = nullptr;                ///< y or grad_x
  float* grad_sums = nullptr;
  // Work of threads: runs of positions of columns of channels.
  uint32_t columns = 1;
  uint32_t runs = 1;     ///< of a row of the batch
  uint32_t classes = 1;  ///< neighbours that begin runs: min(D, T)

  SEQCONV_HD int64_t past_rows() const { return (kernel_size - 1) * dilation; }
  SEQCONV_HD int64_t element(int64_t row, int64_t c) const { return row * channels + c; }
};

/// A thread's place in the work: positions t, t + D, ... of row b of the batch.
template <int V>
struct RunPlace {
  int64_t b = 0, row = 0, channel = 0;  ///< of the first position
  int count = 0;                        ///< of positions; 0: the thread is idle

  template <class Task>
  SEQCONV_DEVICE RunPlace(const Task& task, int64_t thread) {
    const auto runs = static_cast<uint64_t>(task.columns) * task.runs;
    if (static_cast<uint64_t>(thread) >= runs * static_cast<uint64_t>(task.sequences.batch))
      return;
    const auto n = static_cast<uint32_t>(thread);  // launches have fewer than 2^32
    const uint32_t all = n / task.columns, run = all % task.runs;
    const int64_t T = task.sequences.steps, D = task.dilation;
    const int64_t t = run % task.classes + int64_t{run / task.classes} * kRunPositions * D;
    b = all / task.runs;
    row = b * T + t;
    channel = int64_t{n % task.columns} * V;
    count = static_cast<int>(clamped<int64_t>(chunks_of(T - t, D), 0, kRunPositions));
  }
};

}  // namespace seqconv::internal::kernels::cuda
