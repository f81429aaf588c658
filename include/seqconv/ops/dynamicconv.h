#pragma once

#include "seqconv/ops/conv_options.h"

namespace seqconv::ops {

/// Dynamic convolution (Wu et al. 2019, section 4): lightconv with a kernel for
/// every position, normalised over all K taps first, then cut at the edges.
/// x [B, T, C], logits [B, T, H, K] -> [B, T, C]. Differentiable in x, logits
/// and bias; only x and logits are kept for it. Types as in lightconv: logits
/// and bias have x's type, or float32 beside bfloat16.
at::Tensor dynamicconv(const at::Tensor& x, const at::Tensor& logits, const ConvOptions& options);

/// The same in plain tensor algebra, kept for ever as the definition.
at::Tensor dynamicconv_reference(
    const at::Tensor& x, const at::Tensor& logits, const ConvOptions& options);

/// Causal dynamicconv of the next T' >= 1 inputs; see lightconv_step.
/// x [N, T', C], logits [N, T', H, K] -> [N, T', C].
at::Tensor dynamicconv_step(
    const at::Tensor& x,
    at::Tensor& state,
    const at::Tensor& position,
    const at::Tensor& logits,
    const ConvStepOptions& options = {});

}  // namespace seqconv::ops
