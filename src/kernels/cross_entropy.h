#pragma once

#include <cstdint>

#include "kernels/parallel_for.h"

namespace seqconv::internal::kernels {

/// Label-smoothed loss of a row: nll_weight * nll + uniform * sum over all
/// words of -log p.
struct SmoothedLoss {
  double nll_weight = 1;
  double uniform = 0;
};

/// Rows of logits with their targets, and where results go.
template <class T>
struct CrossEntropyRows {
  int64_t rows = 0;
  int64_t vocabulary = 0;
  T* logits = nullptr;              ///< [rows, V]; becomes the gradient
  const int64_t* target = nullptr;  ///< [rows], each in [0, V)
  double* loss = nullptr;           ///< [rows]
  double* nll = nullptr;            ///< [rows]
  bool with_gradient = false;       ///< else the logits are left as garbage
};

/// Loss, negative log-likelihood (natural log) and, in place, the gradient of
/// the loss with respect to the logits, in one visit of each row. NaN and
/// infinite logits come out as a NaN or infinite loss. T: float, double.
template <class T>
void cross_entropy(
    const CrossEntropyRows<T>& pass, const SmoothedLoss& smoothed, const ParallelFor& parallel_for);

}  // namespace seqconv::internal::kernels
