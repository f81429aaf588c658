#pragma once

#include "kernels/cuda/short_conv/walk.h"

/// The passes that give a result for every position: outputs, gradients of sums
/// before an activation, gradients of inputs and of the inputs before.
namespace seqconv::internal::kernels::cuda {

SEQCONV_DEVICE float sigmoid_of(float z) {
  const float e = std::exp(-std::abs(z));
  return (z < 0 ? e : 1.0f) / (1.0f + e);
}
/// The activation of z, and its slope there.
SEQCONV_DEVICE float activated(ConvActivation activation, float z) {
  return activation == ConvActivation::kSilu ? z * sigmoid_of(z) : z;
}
SEQCONV_DEVICE float slope_of(ConvActivation activation, float z) {
  if (activation == ConvActivation::kNone)
    return 1;
  const float s = sigmoid_of(z);
  return s * (1 + z * (1 - s));
}

/// Adds the bias of V channels.
template <int V, class S>
SEQCONV_DEVICE void add_bias(const Beside& bias, int64_t c, float (&sum)[V]) {
  if (bias.data != nullptr)
    unroll<V>([&](int v) { sum[v] += beside_at<S>(bias, c + v); });
}

/// y of a sum.
struct EndInOutputs {
  template <int V, class Task>
  static SEQCONV_DEVICE void end(const Task& task, int64_t row, int64_t c, float (&sum)[V]) {
    add_bias<V, typename Task::Storage>(task.bias, c, sum);
    unroll<V>([&](int v) { sum[v] = activated(task.end.activation, sum[v]); });
    if (task.end.residual)
      add_wide<V>(task.x + task.element(row, c), 1, sum);
  }
  template <int V, class Task>
  static SEQCONV_DEVICE void write(const Task& task, int64_t at, const float (&value)[V]) {
    store_narrow<V>(task.out + at, value);
  }
};

/// The gradient of a sum before the activation.
struct EndInGradSums {
  template <int V, class Task>
  static SEQCONV_DEVICE void end(const Task& task, int64_t row, int64_t c, float (&sum)[V]) {
    float grad[V];
    add_bias<V, typename Task::Storage>(task.bias, c, sum);
    load_wide<V>(task.grad_y + task.element(row, c), grad);
    unroll<V>([&](int v) { sum[v] = grad[v] * slope_of(task.end.activation, sum[v]); });
  }
  template <int V, class Task>
  static SEQCONV_DEVICE void write(const Task& task, int64_t at, const float (&value)[V]) {
    store_narrow<V>(task.grad_sums + at, value);
  }
};

/// The gradient of an input.
struct EndInGradInputs {
  template <int V, class Task>
  static SEQCONV_DEVICE void end(const Task& task, int64_t row, int64_t c, float (&sum)[V]) {
    if (task.end.residual)
      add_wide<V>(task.grad_y + task.element(row, c), 1, sum);
  }
  template <int V, class Task>
  static SEQCONV_DEVICE void write(const Task& task, int64_t at, const float (&value)[V]) {
    store_narrow<V>(task.out + at, value);
  }
};

/// Calls f(L{}) for the type of dynamic taps.
template <bool kDynamic, class S, class F>
SEQCONV_DEVICE void with_taps(const Beside& dynamic, const F& f) {
  if constexpr (kDynamic)
    with_storage<S>(dynamic.storage, f);
  else
    f(NoTaps{});
}

/// A thread for V channels of a run of positions.
template <int V, bool kDynamic, class Source, class End>
struct ShortConvBody {
  template <class Block, class S>
  static SEQCONV_DEVICE void run(Block& block, const ShortConvTask<S>& task) {
    block.each([&](int thread) {
      const RunPlace<V> place(task, block.index() * kThreads + thread);
      if (place.count > 0)
        with_taps<kDynamic, S>(task.dynamic, [&]<class L>(L) { run_of<L>(task, place); });
    });
  }

 private:
  template <class L, class Task>
  static SEQCONV_DEVICE void run_of(const Task& task, const RunPlace<V>& place) {
    const int64_t D = task.dilation, last = place.row + (place.count - 1) * D;
    Span span = task.sequences.at(place.row, place.b);
    if (!span.holds(place.row) || !span.holds(last))
      return one_by_one<L>(task, place);
    span.end = task.sequences.at(last, place.b).end;
    RunSums<L, Source, V, Task> run(task, span, place);
    unroll<kRunPositions>([&](int p) {
      if (p < place.count)
        finish(task, place.row + p * D, place.channel, run.sums[p]);
    });
  }
  /// A run that reaches over ends of sequences.
  template <class L, class Task>
  static SEQCONV_DEVICE void one_by_one(const Task& task, const RunPlace<V>& place) {
    SEQCONV_NO_UNROLL
    for (int p = 0; p < place.count; ++p) {
      const int64_t row = place.row + p * task.dilation;
      const Span span = task.sequences.at(row, place.b);
      float sum[V] = {};
      if (!span.holds(row)) {
        End::template write<V>(task, task.element(row, place.channel), sum);
        continue;
      }
      sum_position<L, Source, V>(task, span, row, place.channel, sum);
      finish(task, row, place.channel, sum);
    }
  }
  template <class Task>
  static SEQCONV_DEVICE void finish(const Task& task, int64_t row, int64_t c, float (&sum)[V]) {
    End::template end<V>(task, row, c, sum);
    End::template write<V>(task, task.element(row, c), sum);
  }
};

/// The gradient of the inputs before, a thread for a channel of one.
template <bool kDynamic, class G>
struct GradPastBody {
  template <class Block, class S>
  static SEQCONV_DEVICE void run(Block& block, const ShortConvTask<S>& task) {
    block.each([&](int thread) {
      const int64_t L = task.past_rows(), C = task.channels;
      const int64_t at = block.index() * kThreads + thread, row = at / C;
      const int64_t m = row / L, c = at % C;
      if (m >= task.sequences.count)
        return;
      const Span span = task.sequences.of_state(m);
      float sum[1] = {};
      with_taps<kDynamic, S>(task.dynamic, [&]<class T>(T) {
        sum_position<T, OfGradients<G>, 1>(task, span, span.first - L + row % L, c, sum);
      });
      task.out[at] = narrow<S>(sum[0]);
    });
  }
};

}  // namespace seqconv::internal::kernels::cuda
