#include "seqconv/kernels/activation.h"

#include <algorithm>

#include "kernels/keep_mask.h"
#include "kernels/multiversion.h"
#include "kernels/vector_math.h"

namespace seqconv::kernels {
namespace {

template <Activation A, class T>
SEQCONV_INLINE T activate(T x) {
  if constexpr (A == Activation::kRelu)
    return x < T{0} ? T{0} : x;
  else
    return x * vector_sigmoid(x);
}

template <class T>
SEQCONV_INLINE T swish_backward(T x, T g) {
  const T s = vector_sigmoid(x);
  return g * (s * (T{1} + x * (T{1} - s)));
}

template <Activation A, class T>
SEQCONV_MULTIVERSION void
forward_range(const T* x, T* y, int64_t begin, int64_t end, Dropout drop) {
  KeepMask<T> mask(drop);
  for (int64_t first = begin; first < end; first += kTile) {
    const int64_t n = std::min(kTile, end - first);
    if (mask.active()) {
      mask.draw(first, n);
#pragma omp simd
      for (int64_t i = 0; i < n; ++i)
        y[first + i] = mask.apply(i, activate<A, T>(x[first + i]));
    } else {
#pragma omp simd
      for (int64_t i = 0; i < n; ++i)
        y[first + i] = activate<A, T>(x[first + i]);
    }
  }
}

template <class T>
SEQCONV_MULTIVERSION void relu_backward_range(
    const T* y,
    const T* grad_y,
    T* grad_x,
    int64_t begin,
    int64_t end,
    T scale) {
#pragma omp simd
  for (int64_t i = begin; i < end; ++i)
    grad_x[i] = y[i] > T{0} ? grad_y[i] * scale : T{0};
}

template <class T>
SEQCONV_MULTIVERSION void swish_backward_range(
    const T* x,
    const T* grad_y,
    T* grad_x,
    int64_t begin,
    int64_t end,
    Dropout drop) {
  KeepMask<T> mask(drop);
  for (int64_t first = begin; first < end; first += kTile) {
    const int64_t n = std::min(kTile, end - first);
    if (mask.active()) {
      mask.draw(first, n);
#pragma omp simd
      for (int64_t i = 0; i < n; ++i)
        grad_x[first + i] =
            swish_backward(x[first + i], mask.apply(i, grad_y[first + i]));
    } else {
#pragma omp simd
      for (int64_t i = 0; i < n; ++i)
        grad_x[first + i] = swish_backward(x[first + i], grad_y[first + i]);
    }
  }
}

}  // namespace

template <class T>
void activation_dropout(
    const T* x,
    T* y,
    int64_t count,
    Activation activation,
    Dropout drop,
    const ParallelFor& parallel_for) {
  for_pieces(count, parallel_for, [&](int64_t begin, int64_t end) {
    switch (activation) {
      case Activation::kRelu:
        return forward_range<Activation::kRelu>(x, y, begin, end, drop);
      case Activation::kSwish:
        return forward_range<Activation::kSwish>(x, y, begin, end, drop);
    }
  });
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
  const T scale = static_cast<T>(1.0 / (1.0 - drop.p));
  for_pieces(count, parallel_for, [&](int64_t begin, int64_t end) {
    switch (activation) {
      case Activation::kRelu:
        return relu_backward_range(saved, grad_y, grad_x, begin, end, scale);
      case Activation::kSwish:
        return swish_backward_range(saved, grad_y, grad_x, begin, end, drop);
    }
  });
}

#define SEQCONV_INSTANTIATE(T)                  \
  template void activation_dropout<T>(          \
      const T*,                                 \
      T*,                                       \
      int64_t,                                  \
      Activation,                               \
      Dropout,                                  \
      const ParallelFor&);                      \
  template void activation_dropout_backward<T>( \
      const T*,                                 \
      const T*,                                 \
      T*,                                       \
      int64_t,                                  \
      Activation,                               \
      Dropout,                                  \
      const ParallelFor&);
SEQCONV_INSTANTIATE(float)
SEQCONV_INSTANTIATE(double)
#undef SEQCONV_INSTANTIATE

}  // namespace seqconv::kernels
