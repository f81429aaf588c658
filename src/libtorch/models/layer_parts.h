#pragma once

#include "libtorch/models/mixer.h"
#include "libtorch/nn/embedding.h"
#include "libtorch/nn/layer_norm.h"

/// Parts that the layers of both sides share.
namespace seqconv::internal {

/// Token and position embedding of a side with V = `vocabulary` symbols. Bands
/// and a width of its own are the decoder's.
EmbeddingOptions embedding_options(const ModelOptions& options, Side side, int64_t vocabulary);

/// The feed-forward network of a layer, with the rates of `model`.
FeedForwardOptions feed_forward_options(const ModelOptions& model, const LayerOptions& layer);

/// The end of a block: norm(residual + dropout(x)), or without the norm in
/// pre-norm models.
at::Tensor add_and_norm(
    const at::Tensor& x,
    const at::Tensor& residual,
    const LayerNorm& norm,
    NormPlacement placement,
    double dropout,
    DropoutPlan& plan);

/// The start of a block: norm(x) in pre-norm models, else x.
at::Tensor maybe_norm(const at::Tensor& x, const LayerNorm& norm, NormPlacement placement);

}  // namespace seqconv::internal
