#pragma once

#include "seqconv/ops/conv_options.h"

namespace seqconv::ops {

/// Lightweight convolution (Wu et al. 2019, section 3):
///   y[b,t,c] = bias[c] + sum_j w[c/R, j] * x[b, t - padding_left + j, c]
/// with w = normalisation of `weight` over its K taps, x zero outside the
/// sequence (with renormalize_edges, which needs softmax, taps that would meet
/// nothing get -infinity first, so that the others sum to 1), heads of R = C/H
/// neighbouring channels. x [B, T, C], weight [H, K] -> [B, T, C] of x's type.
/// Differentiable in x, weight and bias. x is float64, float32 or bfloat16, on
/// a CUDA device float16 too; weight and bias have x's type, or float32 beside
/// 16 bits; sums are float32 or wider. c10::Error "[lightconv] ..., but got
/// ..." on bad input.
at::Tensor lightconv(const at::Tensor& x, const at::Tensor& weight, const ConvOptions& options);

/// The same in plain tensor algebra: slow, readable, differentiable, kept for
/// ever as the definition.
at::Tensor lightconv_reference(
    const at::Tensor& x, const at::Tensor& weight, const ConvOptions& options);

/// State of the causal step form: zeros [N, K-1, C] of x's type.
at::Tensor conv_initial_state(
    int64_t rows, int64_t kernel_size, int64_t channels, const at::TensorOptions& options);

/// Causal lightconv of the next T' >= 1 inputs. x [N, T', C] -> [N, T', C].
/// `state` [N, K-1, C] is updated in place: input number p (from 0) lives in
/// slot p % (K-1). `position` (int64, one element) is the number of inputs
/// already seen; the caller advances it. No gradient.
at::Tensor lightconv_step(
    const at::Tensor& x,
    at::Tensor& state,
    const at::Tensor& position,
    const at::Tensor& weight,
    const ConvStepOptions& options = {});

}  // namespace seqconv::ops
