#pragma once

#include "seqconv/models/block.h"
#include "seqconv/nn/embedding.h"
#include "seqconv/nn/feed_forward.h"
#include "seqconv/nn/layer_norm.h"

/// What the layers of both sides share.
namespace seqconv {

/// Token and position embedding of a side with V = `vocabulary` symbols. Bands
/// and a width of its own are the decoder's.
EmbeddingOptions
embedding_options(const ModelOptions& options, Side side, int64_t vocabulary);

/// The feed-forward options of a layer of a side (semantics.md 8.15).
FeedForwardOptions feed_forward_options(
    const ModelOptions& options,
    const StackOptions& side,
    int64_t layer);

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
at::Tensor
maybe_norm(const at::Tensor& x, const LayerNorm& norm, NormPlacement placement);

}  // namespace seqconv
