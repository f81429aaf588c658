#pragma once

#include "libtorch/models/layer_parts.h"
#include "libtorch/models/translation_model.h"

namespace seqconv::internal {

/// residual -> [norm] -> block -> dropout -> + -> [norm], then the same with
/// the feed-forward network (semantics.md 2.1).
class EncoderLayerImpl : public torch::nn::Module {
 public:
  EncoderLayerImpl(
      const ModelOptions& model, const LayerOptions& options, const InitGenerator& generator);

  /// x [B, S, C], lengths [B] or empty -> [B, S, C].
  at::Tensor forward(
      const at::Tensor& x, const std::optional<at::Tensor>& lengths, DropoutPlan& plan) const;

 private:
  NormPlacement norm_;
  double dropout_;
  std::shared_ptr<Mixer> mixer_;
  LayerNorm block_norm_{nullptr};
  FeedForward feed_forward_{nullptr};
  LayerNorm feed_forward_norm_{nullptr};
  ShortConv block_conv_{nullptr};
  ShortConv feed_forward_conv_{nullptr};
};

/// Embedding, layers and, in pre-norm models, a final normalisation.
class EncoderImpl : public torch::nn::Module {
 public:
  EncoderImpl(const ModelOptions& options, int64_t vocabulary, const InitGenerator& generator);

  /// tokens [B, S], lengths [B] or empty -> [B, S, C].
  at::Tensor forward(
      const at::Tensor& tokens, const std::optional<at::Tensor>& lengths, DropoutPlan& plan) const;

  const Embedding& embedding() const { return embedding_; }

 private:
  Embedding embedding_{nullptr};
  std::vector<std::shared_ptr<EncoderLayerImpl>> layers_;
  LayerNorm final_norm_{nullptr};
};

}  // namespace seqconv::internal
