#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace seqconv::ops {

/// Cumulative average (Zhang et al. 2018, without its network):
///   y[b,t] = (x[b,0] + ... + x[b,t]) / (t + 1)
/// x [B, T, C], float64, float32 or bfloat16, on a CUDA device float16 too
/// -> [B, T, C] of the same type.
/// lengths [B], int64 or int32, optional: right padding counts as zero, gives
/// zero and gets no gradient. Causal. Differentiable any number of times;
/// nothing is kept for it. Sums are float64, so that the error does not grow
/// with T. c10::Error "[cumulative_average] ..., but got ..." on bad input.
at::Tensor cumulative_average(const at::Tensor& x, const std::optional<at::Tensor>& lengths = {});

/// The same in plain tensor algebra, kept for ever as the definition.
at::Tensor cumulative_average_reference(
    const at::Tensor& x, const std::optional<at::Tensor>& lengths = {});

/// State of the step form: the sums of all inputs so far, float64 zeros
/// [N, C] on the device of `options`.
at::Tensor average_initial_state(int64_t rows, int64_t channels, const at::TensorOptions& options);

/// Averages of the next T' >= 1 inputs. x [N, T', C] -> [N, T', C]. `state`
/// [N, C] float64 is updated in place; its size and the cost of a step do not
/// depend on `position` (int64, one element), the number of inputs already
/// seen; the caller advances it. No gradient.
at::Tensor cumulative_average_step(
    const at::Tensor& x, at::Tensor& state, const at::Tensor& position);

}  // namespace seqconv::ops
