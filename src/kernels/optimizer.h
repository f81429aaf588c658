#pragma once

#include <cstdint>

#include "kernels/parallel_for.h"

/// Optimiser passes over flat buffers (semantics 3.1). Every gradient is
/// multiplied by grad_scale as it is read: 1 / tokens and clipping cost
/// nothing.
namespace seqconv::internal::kernels {

/// Adam with bias correction and decoupled weight decay.
struct AdamOptions {
  double lr = 0;
  double beta1 = 0.9;
  double beta2 = 0.98;
  double epsilon = 1e-8;
  double weight_decay = 0;
  int64_t step = 1;  ///< number of this update, from 1
  double grad_scale = 1;
};

/// m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2; p -= lr wd p;
/// p -= lr sqrt(1-b2^n) / (1-b1^n) * m / (sqrt(v) + epsilon).
/// Buffers of `count` elements, p, m and v updated in place. T: float, double.
template <class T>
void adam_step(
    T* p,
    const T* g,
    T* m,
    T* v,
    int64_t count,
    const AdamOptions& options,
    const ParallelFor& parallel_for);

/// Nesterov's accelerated gradient in fairseq's form, whose buffer carries the
/// learning rate.
struct NagOptions {
  double lr = 0;
  double previous_lr = 0;  ///< of the update before; 0: no such update
  double momentum = 0.99;
  double weight_decay = 0;
  double grad_scale = 1;
};

/// c = lr / previous_lr; p *= 1 - lr wd; p += mu^2 c buf - (1+mu) lr g;
/// buf = mu c buf - lr g. The buffer starts at zero. T: float, double.
template <class T>
void nag_step(
    T* p,
    const T* g,
    T* buf,
    int64_t count,
    const NagOptions& options,
    const ParallelFor& parallel_for);

/// Sum of squares in double over a fixed partition: the same for any number of
/// threads. Not finite exactly when an element is not (T = float), so that it
/// is also the test for NaN and Inf. T: float, double.
template <class T>
double squared_norm(const T* x, int64_t count, const ParallelFor&);

/// min(1, max_norm / (norm + 1e-6)); 1 when max_norm is 0 (off).
double clip_factor(double norm, double max_norm);

}  // namespace seqconv::internal::kernels
