#pragma once

#include "kernels/cuda/common/sums.h"
#include "kernels/cuda/short_conv/walk.h"

/// Gradients of taps and of the bias. Every sum has an order of its own: products of
/// a head's channels by lanes that are joined, those over positions by chunks that
/// depend on the sizes alone.
namespace seqconv::internal::kernels::cuda {

/// products[i] += those of V channels of a gradient and of what tap j + i met; tap K
/// is the bias, which met ones.
template <class G, int V, class Task>
SEQCONV_DEVICE void add_products(
    const Task& task,
    const Span& span,
    int64_t row,
    int64_t c,
    int j,
    float (&products)[kTapPack][V]) {
  float grad[V];
  load_wide<V>(static_cast<const G*>(task.gradient) + task.element(row, c), grad);
  const int64_t first = row + (j - task.padding_left) * task.dilation;
  unroll<kTapPack>([&](int i) {
    float in[V];
    if (j + i == task.kernel_size)
      unroll<V>([&](int v) { products[i][v] += grad[v]; });
    else if (
        j + i < task.kernel_size && OfInputs::load<V>(task, span, first + i * task.dilation, c, in))
      unroll<V>([&](int v) { products[i][v] += grad[v] * in[v]; });
  });
}

/// The gradient of dynamic taps: 2^lane_bits lanes for a row and head.
template <class S>
struct GradDynamicTask : ShortConvTask<S> {
  int lane_bits = 0;
  void* grad_dynamic = nullptr;
};

template <int V, class G>
struct GradDynamicBody {
  template <class Block, class S>
  static SEQCONV_DEVICE void run(Block& block, const GradDynamicTask<S>& task) {
    with_storage<S>(task.dynamic.storage, [&]<class L>(L) {
      block.warps([&](auto& warp) {
        const int64_t first = block.index() * kThreads + warp.index() * kWarp;
        run_warp(warp, task, static_cast<L*>(task.grad_dynamic), first);
      });
    });
  }

 private:
  template <class Warp, class S, class L>
  static SEQCONV_DEVICE void run_warp(
      Warp& warp, const GradDynamicTask<S>& task, L* to, int64_t first) {
    const int K = task.kernel_size, bits = task.lane_bits;
    const int64_t units = task.sequences.rows() * task.heads;
    const auto unit_of = [&](int lane) { return (first + lane) >> bits; };
    for (int j = 0; j < K; j += kTapPack) {
      Lanes<float> sums[kTapPack];
      warp.each([&](int lane) {
        float sum[kTapPack] = {};
        if (unit_of(lane) < units)
          add_channels(task, unit_of(lane), lane & ((1 << bits) - 1), j, sum);
        unroll<kTapPack>([&](int i) { sums[i][lane] = sum[i]; });
      });
      unroll<kTapPack>([&](int i) { join_lanes<5>(warp, sums[i], bits, AddFloats{}); });
      warp.each([&](int lane) {
        if (unit_of(lane) >= units || (lane & ((1 << bits) - 1)) != 0)
          return;
        float sum[kTapPack];
        unroll<kTapPack>([&](int i) { sum[i] = sums[i][lane]; });
        L* const taps = to + unit_of(lane) * K + j;
        if (task.packs_taps)
          return store_narrow<kTapPack>(taps, sum);
        unroll<kTapPack>([&](int i) {
          if (j + i < K)
            taps[i] = narrow<L>(sum[i]);
        });
      });
    }
  }
  /// The share of a lane in the sums over a head's channels.
  template <class S>
  static SEQCONV_DEVICE void add_channels(
      const GradDynamicTask<S>& task, int64_t unit, int lane, int j, float (&sum)[kTapPack]) {
    const int64_t row = unit / task.heads, R = task.head_channels;
    const int64_t begin = unit % task.heads * R;
    const Span span = task.sequences.at(row, row / task.sequences.steps);
    if (!span.holds(row))
      return;
    float products[kTapPack][V] = {};
    for (int64_t c = lane * V; c < R; c += int64_t{V} << task.lane_bits)
      add_products<G, V>(task, span, row, begin + c, j, products);
    unroll<kTapPack>([&](int i) { unroll<V>([&](int v) { sum[i] += products[i][v]; }); });
  }
};

/// Rows of which a thread adds up products at least.
inline constexpr int64_t kProductRows = 16;
/// Threads that keep a device busy.
inline constexpr int64_t kManyThreads = 1 << 18;

/// Sums of products over chunks of rows, [chunks, last - first, C]: of taps
/// first .. last - 1, of which number K is the bias.
template <class S>
struct ProductsTask : ShortConvTask<S> {
  int first = 0;
  int last = 0;
  int64_t chunk_rows = 1;
  int64_t chunks = 0;
  float* sums = nullptr;

  SEQCONV_HD uint32_t tap_groups() const {
    return static_cast<uint32_t>(chunks_of(last - first, kTapPack));
  }
  SEQCONV_HD int64_t width() const { return (last - first) * this->channels; }
  SEQCONV_HD int64_t threads() const { return chunks * tap_groups() * this->columns; }
};

/// A thread for V channels and four taps of a chunk.
template <int V, class G>
struct ProductsBody {
  template <class Block, class S>
  static SEQCONV_DEVICE void run(Block& block, const ProductsTask<S>& task) {
    block.each([&](int thread) {
      const int64_t at = block.index() * kThreads + thread;
      if (at >= task.threads())
        return;
      const auto n = static_cast<uint32_t>(at);
      const uint32_t group = n / task.columns, groups = task.tap_groups();
      const int64_t chunk = group / groups, c = int64_t{n % task.columns} * V;
      const int j = task.first + static_cast<int>(group % groups) * kTapPack;
      float products[kTapPack][V] = {};
      add_chunk(task, chunk, c, j, products);
      float* const to = task.sums + chunk * task.width() + c;
      unroll<kTapPack>([&](int i) {
        if (j + i < task.last)
          store_narrow<V>(to + (j + i - task.first) * task.channels, products[i]);
      });
    });
  }

 private:
  template <class S>
  static SEQCONV_DEVICE void add_chunk(
      const ProductsTask<S>& task,
      int64_t chunk,
      int64_t c,
      int j,
      float (&products)[kTapPack][V]) {
    const int64_t T = task.sequences.steps, begin = chunk * task.chunk_rows;
    const int64_t end = min(begin + task.chunk_rows, task.sequences.rows());
    int64_t b = begin / T, next = (b + 1) * T;  // the row of the batch after this one
    SEQCONV_NO_UNROLL
    for (int64_t row = begin; row < end; ++row) {
      if (row == next) {
        ++b;
        next += T;
      }
      const Span span = task.sequences.at(row, b);
      if (span.holds(row))
        add_products<G, V>(task, span, row, c, j, products);
    }
  }
};

/// to [G, K] = sums of from [K, C] over the C / G neighbours of each group.
struct GroupSumTask {
  const float* from = nullptr;
  int64_t kernel_size = 1;
  int64_t channels = 0;
  int64_t groups = 1;
  int lane_bits = 0;
  float* to = nullptr;
};

/// 2^lane_bits lanes for a group and tap.
struct GroupSumBody {
  template <class Block>
  static SEQCONV_DEVICE void run(Block& block, const GroupSumTask& task) {
    const int64_t R = task.channels / task.groups, K = task.kernel_size;
    block.warps([&](auto& warp) {
      const int64_t first = block.index() * kThreads + warp.index() * kWarp;
      const auto unit_of = [&](int lane) { return (first + lane) >> task.lane_bits; };
      const int lanes = 1 << task.lane_bits;
      Lanes<float> sums;
      warp.each([&](int lane) {
        float sum = 0;
        const int64_t unit = unit_of(lane);
        if (unit < task.groups * K) {
          const float* const row = task.from + unit % K * task.channels + unit / K * R;
          for (int64_t c = lane % lanes; c < R; c += lanes)
            sum += row[c];
        }
        sums[lane] = sum;
      });
      join_lanes<5>(warp, sums, task.lane_bits, AddFloats{});
      warp.each([&](int lane) {
        if (unit_of(lane) < task.groups * K && lane % lanes == 0)
          task.to[unit_of(lane)] = sums[lane];
      });
    });
  }
};

}  // namespace seqconv::internal::kernels::cuda
