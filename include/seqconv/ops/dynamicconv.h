#pragma once

#include "seqconv/ops/conv_options.h"

namespace seqconv::ops {

/// Arguments of dynamicconv besides its tensors.
struct DynamicConvFuncOptions {
  int64_t padding_left = 0;  ///< K-1: causal; K/2: centred; 0 .. K-1
  Normalization normalization = Normalization::kSoftmax;
  bool renormalize_edges = false;     ///< taps inside the sequence sum to 1
  DropConnect drop;                   ///< mask [B, T, H, K]
  std::optional<at::Tensor> bias;     ///< [C]
  std::optional<at::Tensor> lengths;  ///< [B], int64 or int32, right padding
};

/// Dynamic convolution (Wu et al. 2019, section 4): lightconv with a kernel for
/// every position, normalised over all K taps first, then cut at the edges.
/// x [B, T, C], logits [B, T, H, K] -> [B, T, C]. Differentiable in x, logits
/// and bias; only x and logits are kept for it. Types as in lightconv: logits
/// and bias have x's type, or float32 beside bfloat16.
at::Tensor dynamicconv(
    const at::Tensor& x, const at::Tensor& logits, const DynamicConvFuncOptions& options);

/// The same in plain tensor algebra, kept for ever as the definition.
at::Tensor dynamicconv_reference(
    const at::Tensor& x, const at::Tensor& logits, const DynamicConvFuncOptions& options);

/// Causal dynamicconv of the next T' >= 1 inputs; see lightconv_step.
/// x [N, T', C], logits [N, T', H, K] -> [N, T', C].
at::Tensor dynamicconv_step(
    const at::Tensor& x,
    at::Tensor& state,
    const at::Tensor& position,
    const at::Tensor& logits,
    const ConvStepOptions& options = {});

}  // namespace seqconv::ops
