#pragma once

#include <cstdint>

#include "seqconv/kernels/dropout.h"
#include "seqconv/kernels/parallel_for.h"

namespace seqconv::kernels {

/// Non-linearity of a feed-forward block: max(x, 0) or x * sigmoid(x).
enum class Activation { kRelu, kSwish };

/// y[i] = dropout(activation(x[i])). T: float, double.
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

}  // namespace seqconv::kernels
