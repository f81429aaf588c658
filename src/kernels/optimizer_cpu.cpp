#include "seqconv/kernels/optimizer.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/multiversion.h"
#include "seqconv/base/error.h"

namespace seqconv::kernels {
namespace {

/// Elements of one piece; pieces do not depend on the number of threads.
constexpr int64_t kPiece = 1 << 14;

/// Adam's numbers in the type of the buffers.
template <class T>
struct AdamFactors {
  T grad_scale, beta1, rest1, beta2, rest2, epsilon, decay, rate;
};

template <class T>
SEQCONV_MULTIVERSION void adam_range(
    T* p,
    const T* g,
    T* m,
    T* v,
    int64_t count,
    const AdamFactors<T>& factors) {
  const AdamFactors<T> f = factors;
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const T grad = g[i] * f.grad_scale;
    const T mean = f.beta1 * m[i] + f.rest1 * grad;
    const T square = f.beta2 * v[i] + f.rest2 * grad * grad;
    m[i] = mean;
    v[i] = square;
    const T decayed = p[i] - f.decay * p[i];
    p[i] = decayed - f.rate * (mean / (std::sqrt(square) + f.epsilon));
  }
}

template <class T>
struct NagFactors {
  T keep, look_ahead, look_rate, carry, rate;
};

template <class T>
SEQCONV_MULTIVERSION void nag_range(
    T* p,
    const T* g,
    T* buf,
    int64_t count,
    const NagFactors<T>& factors) {
  const NagFactors<T> f = factors;
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    p[i] = p[i] * f.keep + f.look_ahead * buf[i] - f.look_rate * g[i];
    buf[i] = f.carry * buf[i] - f.rate * g[i];
  }
}

template <class T>
SEQCONV_MULTIVERSION double squared_sum(const T* x, int64_t count) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) {
    const double value = static_cast<double>(x[i]);
    sum += value * value;
  }
  return sum;
}

template <class T>
SEQCONV_MULTIVERSION void scale_range(T* x, int64_t count, T factor) {
  for (int64_t i = 0; i < count; ++i)
    x[i] *= factor;
}

int64_t piece_count(int64_t count) {
  return (count + kPiece - 1) / kPiece;
}

/// Calls body(first, n) for every piece.
template <class Body>
void for_pieces(
    int64_t count,
    const ParallelFor& parallel_for,
    const Body& body) {
  parallel_for(
      piece_count(count),
      /*grain=*/1,
      [&](int64_t begin, int64_t end) {
        for (int64_t piece = begin; piece < end; ++piece) {
          const int64_t first = piece * kPiece;
          body(first, std::min(kPiece, count - first));
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
  for_pieces(count, parallel_for, [&](int64_t first, int64_t size) {
    adam_range(
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
  for_pieces(count, parallel_for, [&](int64_t first, int64_t size) {
    nag_range(
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
  std::vector<double> partial(static_cast<size_t>(piece_count(count)));
  for_pieces(count, parallel_for, [&](int64_t first, int64_t size) {
    partial[first / kPiece] = squared_sum(x + first, size);
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
  for_pieces(count, parallel_for, [&](int64_t first, int64_t size) {
    scale_range(x + first, size, static_cast<T>(factor));
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
