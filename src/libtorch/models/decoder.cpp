#include "libtorch/models/decoder.h"

#include <ATen/ops/zeros.h>

namespace seqconv::internal {

DecoderLayerImpl::DecoderLayerImpl(
    const ModelOptions& model, const LayerOptions& options, const InitGenerator& generator)
    : norm_(options.norm), dropout_(model.dropout) {
  mixer_ = register_module("block", make_mixer(model, options.mixer, generator));
  block_norm_ = register_module("block_norm", LayerNorm(model.dim, generator));
  if (options.cross_heads > 0) {
    cross_attention_ = register_module(
        "cross_attention",
        CrossAttention(
            CrossAttentionOptions{
                .channels = model.dim,
                .heads = options.cross_heads,
                .dropout = model.attention_dropout},
            generator));
    cross_attention_norm_ =
        register_module("cross_attention_norm", LayerNorm(model.dim, generator));
  }
  feed_forward_ =
      register_module("feed_forward", FeedForward(feed_forward_options(model, options), generator));
  feed_forward_norm_ = register_module("feed_forward_norm", LayerNorm(model.dim, generator));
  if (const LayerShortConv& conv = options.mixer.short_conv; conv.before_blocks()) {
    const ShortConvOptions own = short_conv_options(conv, model.dim, model.dim);
    block_conv_ = register_module("block_conv", ShortConv(own, generator));
    feed_forward_conv_ = register_module("feed_forward_conv", ShortConv(own, generator));
  }
}

void LayerState::reorder(const at::Tensor& parents) {
  mixer.reorder(parents);
  block_conv.reorder(parents);
  feed_forward_conv.reorder(parents);
  feed_forward.reorder(parents);
}

at::Tensor DecoderLayerImpl::mixed(const at::Tensor& x, DropoutPlan& plan) const {
  const at::Tensor h = maybe_norm(x, block_norm_, norm_);
  return mixer_->forward(convolve(block_conv_, h, h, {}), {}, plan);
}

template <class Feed>
at::Tensor DecoderLayerImpl::finish(
    at::Tensor y,
    const at::Tensor& residual,
    const CrossMemory* memory,
    DropoutPlan& plan,
    HeadLook* look,
    const Feed& feed) const {
  y = add_and_norm(y, residual, block_norm_, norm_, dropout_, plan);
  if (cross_attention_) {
    SEQCONV_CHECK(memory, "a translation model's decoder needs a source");
    const at::Tensor z =
        cross_attention_->forward(maybe_norm(y, cross_attention_norm_, norm_), *memory, plan, look);
    y = add_and_norm(z, y, cross_attention_norm_, norm_, dropout_, plan);
  }
  const at::Tensor f = feed(maybe_norm(y, feed_forward_norm_, norm_));
  return add_and_norm(f, y, feed_forward_norm_, norm_, dropout_, plan);
}

at::Tensor DecoderLayerImpl::forward(
    const at::Tensor& x, const CrossMemory* memory, DropoutPlan& plan, HeadLook* look) const {
  return finish(mixed(x, plan), x, memory, plan, look, [&](const at::Tensor& h) {
    return feed_forward_->forward(convolve(feed_forward_conv_, h, h, {}), {}, plan);
  });
}

at::Tensor DecoderLayerImpl::step(
    const at::Tensor& x,
    const CrossMemory* memory,
    LayerState& state,
    const StepPosition& position) const {
  const at::Tensor h = maybe_norm(x, block_norm_, norm_);
  const at::Tensor y =
      mixer_->step(convolve_step(block_conv_, h, h, state.block_conv), state.mixer, position);
  DropoutPlan evaluation;
  return finish(y, x, memory, evaluation, /*look=*/nullptr, [&](const at::Tensor& f) {
    return feed_forward_->step(
        convolve_step(feed_forward_conv_, f, f, state.feed_forward_conv), state.feed_forward);
  });
}

at::Tensor DecoderLayerImpl::source_shares(const at::Tensor& x, const CrossMemory& memory) const {
  DropoutPlan evaluation;
  at::Tensor y = mixed(x, evaluation);
  y = add_and_norm(y, x, block_norm_, norm_, dropout_, evaluation);
  return cross_attention_->probabilities(maybe_norm(y, cross_attention_norm_, norm_), memory);
}

CrossMemory DecoderLayerImpl::memory(
    const at::Tensor& states, const std::optional<at::Tensor>& lengths) const {
  return cross_attention_->memory(states, lengths);
}

LayerState DecoderLayerImpl::initial_state(int64_t rows) const {
  return {
      .mixer = mixer_->initial_state(rows),
      .block_conv = past_of(block_conv_, rows),
      .feed_forward_conv = past_of(feed_forward_conv_, rows),
      .feed_forward = feed_forward_->initial_state(rows)};
}

DecoderImpl::DecoderImpl(
    const ModelOptions& options,
    Task task,
    int64_t vocabulary,
    const InitGenerator& generator,
    const at::Tensor& shared) {
  embedding_ = register_module(
      "embedding",
      Embedding(embedding_options(options, Side::kDecoder, vocabulary), generator, shared));
  for (int64_t i = 0; i < options.decoder.layers; ++i) {
    layers_.push_back(register_module(
        concat("layer", i),
        std::make_shared<DecoderLayerImpl>(
            options, layer_options(options, task, Side::kDecoder, i), generator)));
  }
  if (task == Task::kTranslation && options.norm_of(options.decoder) == NormPlacement::kPre)
    final_norm_ = register_module("final_norm", LayerNorm(options.dim, generator));
}

namespace {

const CrossMemory* memory_of(const std::vector<CrossMemory>& memories, size_t layer) {
  return memories.empty() ? nullptr : &memories[layer];
}

}  // namespace

std::vector<CrossMemory> DecoderImpl::memories(
    const at::Tensor& states, const std::optional<at::Tensor>& lengths) const {
  std::vector<CrossMemory> memories;
  for (const auto& layer : layers_)
    memories.push_back(layer->memory(states, lengths));
  return memories;
}

at::Tensor DecoderImpl::forward(
    const at::Tensor& target_in,
    const std::vector<CrossMemory>& memories,
    DropoutPlan& plan,
    LayerLook* look) const {
  at::Tensor x = embedding_->forward(target_in, plan);  // [B, T, C]
  for (size_t i = 0; i < layers_.size(); ++i)
    x = layers_[i]->forward(
        x, memory_of(memories, i), plan, look != nullptr && look->layer == i ? look : nullptr);
  return final_norm_.is_empty() ? x : final_norm_->forward(x);
}

at::Tensor DecoderImpl::source_shares(
    const at::Tensor& target_in, const std::vector<CrossMemory>& memories, size_t layer) const {
  DropoutPlan evaluation;
  at::Tensor x = embedding_->forward(target_in, evaluation);  // [B, T, C]
  for (size_t i = 0; i < layer; ++i)
    x = layers_[i]->forward(x, &memories[i], evaluation);
  return layers_[layer]->source_shares(x, memories[layer]);
}

void DecoderImpl::visit_source_shares(
    const at::Tensor& target_in,
    const std::vector<CrossMemory>& memories,
    const std::function<void(int64_t layer, const at::Tensor& shares)>& take) const {
  DropoutPlan evaluation;
  at::Tensor x = embedding_->forward(target_in, evaluation);  // [B, T, C]
  for (size_t i = 0; i < layers_.size(); ++i) {
    take(static_cast<int64_t>(i), layers_[i]->source_shares(x, memories[i]));
    x = layers_[i]->forward(x, &memories[i], evaluation);
  }
}

DecoderState DecoderImpl::initial_state(int64_t rows) const {
  DecoderState state;
  for (const auto& layer : layers_)
    state.layers.push_back(layer->initial_state(rows));
  state.position.tensor = at::zeros({1}, at::dtype(at::kLong).device(embedding_->device()));
  return state;
}

at::Tensor DecoderImpl::step(
    const at::Tensor& tokens, const std::vector<CrossMemory>& memories, DecoderState& state) const {
  DropoutPlan evaluation;
  at::Tensor x =  // [N, T', C]
      embedding_->forward(tokens, evaluation, state.position.count);
  for (size_t i = 0; i < layers_.size(); ++i)
    x = layers_[i]->step(x, memory_of(memories, i), state.layers[i], state.position);
  state.position.count += tokens.size(1);
  state.position.tensor.fill_(state.position.count);
  return final_norm_.is_empty() ? x : final_norm_->forward(x);
}

}  // namespace seqconv::internal
