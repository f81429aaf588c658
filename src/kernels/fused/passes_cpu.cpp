#include <algorithm>
#include <vector>

#include "kernels/activation.h"
#include "kernels/common/chunks.h"
#include "kernels/cross_entropy.h"
#include "kernels/dropout.h"
#include "kernels/fused/elementwise_ops.h"
#include "kernels/layer_norm.h"

/// The passes between the matrix products: how they are cut for threads.
namespace seqconv::internal::kernels {

template <class T>
void dropout(const T* x, T* y, int64_t count, Dropout drop, const ParallelFor& parallel_for) {
  const auto map = elementwise_ops<T>(best_isa()).dropout;
  for_chunks(count, parallel_for, [&](int64_t begin, int64_t end) { map(x, y, begin, end, drop); });
}

template <class T>
void dropout_add(
    const T* x,
    const T* residual,
    T* y,
    int64_t count,
    Dropout drop,
    const ParallelFor& parallel_for) {
  const auto map = elementwise_ops<T>(best_isa()).dropout_add;
  for_chunks(count, parallel_for, [&](int64_t begin, int64_t end) {
    map(x, residual, y, begin, end, drop);
  });
}

template <class T>
void activation_dropout(
    const T* x,
    T* y,
    int64_t count,
    Activation activation,
    Dropout drop,
    const ParallelFor& parallel_for) {
  const ElementwiseOps<T>& ops = elementwise_ops<T>(best_isa());
  const auto map = activation == Activation::kRelu ? ops.relu : ops.swish;
  for_chunks(count, parallel_for, [&](int64_t begin, int64_t end) { map(x, y, begin, end, drop); });
}

template <class T>
void activation_dropout_backward(
    const T* saved,
    const T* grad_y,
    T* grad_x,
    int64_t count,
    Activation activation,
    Dropout drop,
    const ParallelFor& parallel_for) {
  const ElementwiseOps<T>& ops = elementwise_ops<T>(best_isa());
  const auto map = activation == Activation::kRelu ? ops.relu_backward : ops.swish_backward;
  for_chunks(count, parallel_for, [&](int64_t begin, int64_t end) {
    map(saved, grad_y, grad_x, begin, end, drop);
  });
}

/// Calls row(r) for rows that are not padding; the others are zeros in `out`,
/// whose rows have `width` elements.
template <class T, class Row>
static void for_rows(
    const GluShape& shape, T* out, int64_t width, const ParallelFor& parallel_for, const Row& row) {
  const int64_t* const lengths = shape.lengths;
  const int64_t grain = row_grain(shape.channels);
  parallel_for(shape.rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      if (lengths != nullptr && r % shape.steps >= lengths[r / shape.steps])
        std::fill_n(out + r * width, width, T{});
      else
        row(r);
    }
  });
}

template <class T>
void glu(const T* x, T* y, const GluShape& shape, const ParallelFor& parallel_for) {
  const auto gate = elementwise_ops<T>(best_isa()).glu;
  const int64_t C = shape.channels;
  for_rows(shape, y, C, parallel_for, [&](int64_t r) { gate(x + r * 2 * C, y + r * C, C); });
}

template <class T>
void glu_backward(
    const T* x,
    const T* grad_y,
    T* grad_x,
    const GluShape& shape,
    const ParallelFor& parallel_for) {
  const auto gate = elementwise_ops<T>(best_isa()).glu_backward;
  const int64_t C = shape.channels;
  for_rows(shape, grad_x, 2 * C, parallel_for, [&](int64_t r) {
    gate(x + r * 2 * C, grad_y + r * C, grad_x + r * 2 * C, C);
  });
}

template <class T>
void layer_norm(const LayerNormForward<T>& pass, const ParallelFor& parallel_for) {
  const auto rows = elementwise_ops<T>(best_isa()).layer_norm;
  const int64_t grain = row_grain(pass.channels);
  parallel_for(pass.rows, grain, [&](int64_t begin, int64_t end) { rows(pass, begin, end); });
}

template <class T>
void layer_norm_backward(const LayerNormBackward<T>& pass, const ParallelFor& parallel_for) {
  using A = AccumulatorOf<T>;
  const auto rows = elementwise_ops<T>(best_isa()).layer_norm_backward;
  // Parts with so many rows that adding their sums up costs little.
  constexpr int64_t kMinRows = 32, kMaxParts = 128;
  const int64_t C = pass.channels, grain = std::max(row_grain(C), kMinRows);
  const int64_t parts = std::clamp<int64_t>(pass.rows / grain, 1, kMaxParts);
  // [parts, 2, C]: sums for grad_weight and grad_bias, wanted or not.
  std::vector<A> partial(static_cast<size_t>(parts * 2 * C), A{0});
  parallel_for(parts, /*grain=*/1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      A* const sums = partial.data() + part * 2 * C;
      const int64_t first = pass.rows * part / parts;
      rows(pass, first, pass.rows * (part + 1) / parts, sums, sums + C);
    }
  });
  if (pass.grad_weight == nullptr)
    return;
  std::fill_n(pass.grad_weight, C, A{0});
  std::fill_n(pass.grad_bias, C, A{0});
  for (int64_t part = 0; part < parts; ++part) {
    const A* const sums = partial.data() + part * 2 * C;
    for (int64_t c = 0; c < C; ++c) {
      pass.grad_weight[c] += sums[c];
      pass.grad_bias[c] += sums[C + c];
    }
  }
}

template <class T>
void cross_entropy(
    const CrossEntropyRows<T>& pass,
    const SmoothedLoss& smoothed,
    const ParallelFor& parallel_for) {
  const ElementwiseOps<T>& ops = elementwise_ops<T>(best_isa());
  const int64_t grain = row_grain(pass.vocabulary);
  parallel_for(pass.rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      ops.cross_entropy(pass, smoothed, row);
  });
}

SEQCONV_INSTANTIATE_STORED(dropout);
SEQCONV_INSTANTIATE_STORED(dropout_add);
SEQCONV_INSTANTIATE_STORED(activation_dropout);
SEQCONV_INSTANTIATE_STORED(activation_dropout_backward);
SEQCONV_INSTANTIATE_STORED(glu);
SEQCONV_INSTANTIATE_STORED(glu_backward);
SEQCONV_INSTANTIATE_STORED(layer_norm);
SEQCONV_INSTANTIATE_STORED(layer_norm_backward);
SEQCONV_INSTANTIATE(cross_entropy);

}  // namespace seqconv::internal::kernels
