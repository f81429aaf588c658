#include "seqconv/kernels/optimizer.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/fused/elementwise_ops.h"
#include "seqconv/base/error.h"

namespace seqconv::kernels {
namespace {

/// Elements of one chunk; chunks do not depend on the number of threads.
constexpr int64_t kChunk = 1 << 14;

int64_t chunk_count(int64_t count) {
  return (count + kChunk - 1) / kChunk;
}

/// Calls body(first, n) for every chunk.
template <class Body>
void for_chunks(
    int64_t count,
    const ParallelFor& parallel_for,
    const Body& body) {
  parallel_for(
      chunk_count(count),
      /*grain=*/1,
      [&](int64_t begin, int64_t end) {
        for (int64_t chunk = begin; chunk < end; ++chunk) {
          const int64_t first = chunk * kChunk;
          body(first, std::min(kChunk, count - first));
        }
      });
}

}  // namespace

template <class T>
void adam_step(
    T* param,
    const T* grad,
    T* exp_avg,
    T* exp_avg_sq,
    int64_t count,
    const AdamOptions& o,
    const ParallelFor& parallel_for) {
  SEQCONV_CHECK(o.step >= 1, "adam_step: step must be >= 1, but got ", o.step);
  const double n = static_cast<double>(o.step);
  const double rate =
      o.lr * std::sqrt(1 - std::pow(o.beta2, n)) / (1 - std::pow(o.beta1, n));
  const AdamFactors<T> factors{
      static_cast<T>(o.grad_scale),
      static_cast<T>(o.beta1),
      static_cast<T>(1 - o.beta1),
      static_cast<T>(o.beta2),
      static_cast<T>(1 - o.beta2),
      static_cast<T>(o.epsilon),
      static_cast<T>(o.lr * o.weight_decay),
      static_cast<T>(rate)};
  const ElementwiseOps<T>& ops = elementwise_ops<T>(best_isa());
  for_chunks(count, parallel_for, [&](int64_t first, int64_t size) {
    ops.adam(
        param + first,
        grad + first,
        exp_avg + first,
        exp_avg_sq + first,
        size,
        factors);
  });
}

template <class T>
void nag_step(
    T* param,
    const T* grad,
    T* momentum_buffer,
    int64_t count,
    const NagOptions& o,
    const ParallelFor& parallel_for) {
  const double correction = o.previous_lr > 0 ? o.lr / o.previous_lr : 1.0;
  const double carry = o.momentum * correction;
  const NagFactors<T> factors{
      static_cast<T>(1 - o.lr * o.weight_decay),
      static_cast<T>(o.momentum * carry),
      static_cast<T>((1 + o.momentum) * o.lr * o.grad_scale),
      static_cast<T>(carry),
      static_cast<T>(o.lr * o.grad_scale)};
  const ElementwiseOps<T>& ops = elementwise_ops<T>(best_isa());
  for_chunks(count, parallel_for, [&](int64_t first, int64_t size) {
    ops.nag(
        param + first,
        grad + first,
        momentum_buffer + first,
        size,
        factors);
  });
}

template <class T>
double
squared_norm(const T* x, int64_t count, const ParallelFor& parallel_for) {
  std::vector<double> partial(static_cast<size_t>(chunk_count(count)));
  const ElementwiseOps<T>& ops = elementwise_ops<T>(best_isa());
  for_chunks(count, parallel_for, [&](int64_t first, int64_t size) {
    partial[first / kChunk] = ops.squared_sum(x + first, size);
  });
  double sum = 0;
  for (const double value : partial)
    sum += value;
  return sum;
}

double clip_factor(double norm, double max_norm) {
  return max_norm > 0 ? std::min(1.0, max_norm / (norm + 1e-6)) : 1.0;
}

template <class T>
void scale(
    T* x,
    int64_t count,
    double factor,
    const ParallelFor& parallel_for) {
  const ElementwiseOps<T>& ops = elementwise_ops<T>(best_isa());
  for_chunks(count, parallel_for, [&](int64_t first, int64_t size) {
    ops.scale(x + first, size, static_cast<T>(factor));
  });
}

#define SEQCONV_INSTANTIATE(T)                                            \
  template void adam_step<T>(                                             \
      T*,                                                                 \
      const T*,                                                           \
      T*,                                                                 \
      T*,                                                                 \
      int64_t,                                                            \
      const AdamOptions&,                                                 \
      const ParallelFor&);                                                \
  template void nag_step<T>(                                              \
      T*,                                                                 \
      const T*,                                                           \
      T*,                                                                 \
      int64_t,                                                            \
      const NagOptions&,                                                  \
      const ParallelFor&);                                                \
  template double squared_norm<T>(const T*, int64_t, const ParallelFor&); \
  template void scale<T>(T*, int64_t, double, const ParallelFor&);
SEQCONV_INSTANTIATE(float)
SEQCONV_INSTANTIATE(double)
#undef SEQCONV_INSTANTIATE

}  // namespace seqconv::kernels
