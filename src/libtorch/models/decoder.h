#pragma once

#include <functional>

#include "libtorch/models/layer_parts.h"
#include "libtorch/nn/attention.h"

namespace seqconv::internal {

/// The past of a layer's parts.
struct LayerState {
  MixerState mixer;
  ShortConvPast block_conv;
  ShortConvPast feed_forward_conv;
  FeedForwardState feed_forward;

  void reorder(const at::Tensor& parents);
};

/// Everything a decoder remembers between two steps, for N rows.
struct DecoderState {
  std::vector<LayerState> layers;
  StepPosition position;
};

/// Causal block, the look at the source (translation only), feed-forward
/// network; each with residual and norm. The memory is the source as the layer
/// sees it, nullptr in a language model.
class DecoderLayerImpl : public torch::nn::Module {
 public:
  DecoderLayerImpl(
      const ModelOptions& model, const LayerOptions& options, const InitGenerator& generator);

  /// x [B, T, C] -> [B, T, C]. Target padding is on the right and the block is
  /// causal, so it needs no mask.
  at::Tensor forward(
      const at::Tensor& x,
      const CrossMemory* memory,
      DropoutPlan& plan,
      HeadLook* look = nullptr) const;
  /// The next inputs x [N, T', C] -> [N, T', C].
  at::Tensor step(
      const at::Tensor& x,
      const CrossMemory* memory,
      LayerState& state,
      const StepPosition& position) const;

  /// The shares of each head's look at the source, of the same inputs: [B, H, T, S].
  at::Tensor source_shares(const at::Tensor& x, const CrossMemory& memory) const;

  CrossMemory memory(const at::Tensor& states, const std::optional<at::Tensor>& lengths) const;
  LayerState initial_state(int64_t rows) const;

 private:
  /// The block's output of whole sequences, before its residual.
  at::Tensor mixed(const at::Tensor& x, DropoutPlan& plan) const;
  /// Computes what comes after the block, for both forms: feed(input) is the network's.
  /// residual and y [B, T, C].
  template <class Feed>
  at::Tensor finish(
      at::Tensor y,
      const at::Tensor& residual,
      const CrossMemory* memory,
      DropoutPlan& plan,
      HeadLook* look,
      const Feed& feed) const;

  NormPlacement norm_;
  double dropout_;
  std::shared_ptr<Mixer> mixer_;
  LayerNorm block_norm_{nullptr};
  CrossAttention cross_attention_{nullptr};
  LayerNorm cross_attention_norm_{nullptr};
  FeedForward feed_forward_{nullptr};
  LayerNorm feed_forward_norm_{nullptr};
  ShortConv block_conv_{nullptr};
  ShortConv feed_forward_conv_{nullptr};
};

/// Asks for what a head of layer `layer` looks at.
struct LayerLook : HeadLook {
  size_t layer = 0;
};

/// Embedding, layers and, in pre-norm translation models, a final
/// normalisation (a language model has none: semantics.md 2.1). `memories` has
/// an entry a layer, and none in a language model.
class DecoderImpl : public torch::nn::Module {
 public:
  /// `shared`: the source embedding's table when all are tied, else undefined.
  DecoderImpl(
      const ModelOptions& options,
      Task task,
      int64_t vocabulary,
      const InitGenerator& generator,
      const at::Tensor& shared);

  /// target_in [B, T] -> [B, T, C].
  at::Tensor forward(
      const at::Tensor& target_in,
      const std::vector<CrossMemory>& memories,
      DropoutPlan& plan,
      LayerLook* look = nullptr) const;

  /// Gives the shares of layer `layer`: target_in [B, T] -> [B, H, T, S].
  at::Tensor source_shares(
      const at::Tensor& target_in, const std::vector<CrossMemory>& memories, size_t layer) const;
  /// Gives `take` those of every layer, the first one first.
  void visit_source_shares(
      const at::Tensor& target_in,
      const std::vector<CrossMemory>& memories,
      const std::function<void(int64_t layer, const at::Tensor& shares)>& take) const;

  /// The source as each layer's cross-attention sees it.
  std::vector<CrossMemory> memories(
      const at::Tensor& states, const std::optional<at::Tensor>& lengths) const;

  DecoderState initial_state(int64_t rows) const;
  /// tokens [N, T'] -> [N, T', C]; advances the state by T' tokens.
  at::Tensor step(
      const at::Tensor& tokens,
      const std::vector<CrossMemory>& memories,
      DecoderState& state) const;

  const Embedding& embedding() const { return embedding_; }

 private:
  Embedding embedding_{nullptr};
  std::vector<std::shared_ptr<DecoderLayerImpl>> layers_;
  LayerNorm final_norm_{nullptr};
};

}  // namespace seqconv::internal
