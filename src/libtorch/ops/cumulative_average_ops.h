#pragma once

#include "kernels/cumulative_average.h"
#include "libtorch/ops/conv_checks.h"
#include "libtorch/ops/dispatch.h"

/// The dispatcher's entries of cumulative_average.
namespace seqconv::ops {
using namespace internal;

/// Forward (x -> y) and backward (grad_y -> grad_x): two linear maps, each the
/// other's transpose.
using AverageSignature = at::Tensor(const at::Tensor& x, const OptionalTensor& lengths);

using AverageStepSignature =
    at::Tensor(const at::Tensor& x, at::Tensor& state, const at::Tensor& position);

inline constexpr const char* kAverage = "cumulative_average";
inline constexpr const char* kAverageBackward = "cumulative_average_backward";
inline constexpr const char* kAverageStep = "cumulative_average_step";

/// The operators, to be called through the dispatcher.
const c10::TypedOperatorHandle<AverageSignature>& average_op();
const c10::TypedOperatorHandle<AverageSignature>& average_backward_op();
const c10::TypedOperatorHandle<AverageStepSignature>& average_step_op();

/// Sizes of x [B, T, C].
kernels::AverageShape average_shape(const at::Tensor& x);

/// Everything that can be said without reading values.
void check_average(const char* op, const at::Tensor& x, const OptionalTensor& lengths);
void check_average_step(const at::Tensor& x, const at::Tensor& state, const at::Tensor& position);

}  // namespace seqconv::ops
