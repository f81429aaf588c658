#include "libtorch/models/encoder.h"

namespace seqconv::internal {

EncoderLayerImpl::EncoderLayerImpl(
    const ModelOptions& model, const LayerOptions& options, const InitGenerator& generator)
    : norm_(options.norm), dropout_(model.dropout) {
  mixer_ = register_module("block", make_mixer(model, options.mixer, generator));
  block_norm_ = register_module("block_norm", LayerNorm(model.dim, generator));
  feed_forward_ =
      register_module("feed_forward", FeedForward(feed_forward_options(model, options), generator));
  feed_forward_norm_ = register_module("feed_forward_norm", LayerNorm(model.dim, generator));
  if (const LayerShortConv& conv = options.mixer.short_conv; conv.before_blocks()) {
    const ShortConvOptions own = short_conv_options(conv, model.dim, model.dim);
    block_conv_ = register_module("block_conv", ShortConv(own, generator));
    feed_forward_conv_ = register_module("feed_forward_conv", ShortConv(own, generator));
  }
}

at::Tensor EncoderLayerImpl::forward(
    const at::Tensor& x, const std::optional<at::Tensor>& lengths, DropoutPlan& plan) const {
  const at::Tensor h = maybe_norm(x, block_norm_, norm_);
  at::Tensor y = mixer_->forward(convolve(block_conv_, h, h, lengths), lengths, plan);
  y = add_and_norm(y, x, block_norm_, norm_, dropout_, plan);
  const at::Tensor f = maybe_norm(y, feed_forward_norm_, norm_);
  const at::Tensor z =
      feed_forward_->forward(convolve(feed_forward_conv_, f, f, lengths), lengths, plan);
  return add_and_norm(z, y, feed_forward_norm_, norm_, dropout_, plan);
}

EncoderImpl::EncoderImpl(
    const ModelOptions& options, int64_t vocabulary, const InitGenerator& generator) {
  embedding_ = register_module(
      "embedding", Embedding(embedding_options(options, Side::kEncoder, vocabulary), generator));
  for (int64_t i = 0; i < options.encoder.layers; ++i) {
    layers_.push_back(register_module(
        concat("layer", i),
        std::make_shared<EncoderLayerImpl>(
            options, layer_options(options, Task::kTranslation, Side::kEncoder, i), generator)));
  }
  if (options.norm_of(options.encoder) == NormPlacement::kPre)
    final_norm_ = register_module("final_norm", LayerNorm(options.dim, generator));
}

at::Tensor EncoderImpl::forward(
    const at::Tensor& tokens, const std::optional<at::Tensor>& lengths, DropoutPlan& plan) const {
  at::Tensor x = embedding_->forward(tokens, plan);  // [B, S, C]
  for (const auto& layer : layers_)
    x = layer->forward(x, lengths, plan);
  return final_norm_.is_empty() ? x : final_norm_->forward(x);
}

}  // namespace seqconv::internal
