#pragma once

#include <cstdint>

#include "kernels/dropout.h"
#include "kernels/parallel_for.h"

namespace seqconv::internal::kernels {

/// Non-linearity of a feed-forward block: max(x, 0) or x * sigmoid(x).
enum class Activation { kRelu, kSwish };

/// y[i] = dropout(activation(x[i])). T: float, double, BFloat16.
template <class T>
void activation_dropout(
    const T* x,
    T* y,
    int64_t count,
    Activation activation,
    Dropout drop,
    const ParallelFor& parallel_for);

/// Gradient of activation_dropout. `saved` is the output y for relu (y > 0 says
/// all, nothing is drawn again; the derivative at 0 is 0) and the input x for
/// swish. `scale` of relu's survivors comes from drop.p.
template <class T>
void activation_dropout_backward(
    const T* saved,
    const T* grad_y,
    T* grad_x,
    int64_t count,
    Activation activation,
    Dropout drop,
    const ParallelFor& parallel_for);

/// Rows of a gated linear unit. With `lengths` [rows / steps], row r is
/// position r % steps of sequence r / steps and counts as padding at and beyond
/// that sequence's length.
struct GluShape {
  int64_t rows = 0;
  int64_t channels = 0;  ///< of the output; the input has twice as many
  int64_t steps = 0;     ///< rows of a sequence; read only with lengths
  const int64_t* lengths = nullptr;
};

/// x [rows, 2C] -> y [rows, C] = a * sigmoid(b), a the first half of a row;
/// zero where the row is padding. T: float, double, BFloat16.
template <class T>
void glu(const T* x, T* y, const GluShape& shape, const ParallelFor&);

/// grad_y [rows, C] -> grad_x [rows, 2C]; zero where the row is padding.
template <class T>
void glu_backward(
    const T* x, const T* grad_y, T* grad_x, const GluShape& shape, const ParallelFor& parallel_for);

}  // namespace seqconv::internal::kernels
