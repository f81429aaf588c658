#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <optional>

#include "libtorch/nn/dropout_plan.h"
#include "libtorch/nn/feed_forward.h"
#include "libtorch/nn/init.h"
#include "libtorch/nn/short_conv.h"
#include "libtorch/nn/state.h"
#include "model/layers.h"

namespace seqconv::internal {

/// Mixes information along time in a layer: linear1, gate, convolution and
/// linear2; self-attention with its four projections; average attention with
/// its network and gate; or an ordinary convolution alone. Normalisation,
/// residual and the final dropout belong to the layer.
class Mixer : public torch::nn::Module {
 public:
  /// x [B, T, C], lengths [B] or empty (nothing is padded) -> [B, T, C].
  virtual at::Tensor forward(
      const at::Tensor& x, const std::optional<at::Tensor>& lengths, DropoutPlan& plan) const = 0;

  /// Decoder side only: the next inputs x [N, T', C] -> [N, T', C].
  virtual at::Tensor step(
      const at::Tensor& x, MixerState& state, const StepPosition& position) const = 0;
  virtual MixerState initial_state(int64_t rows) const = 0;
};

/// The mixer of a layer, with the rates of `model`: here and in
/// feed_forward_init alone modules depend on the kind.
std::shared_ptr<Mixer> make_mixer(
    const ModelOptions& model, const MixerOptions& mixer, const InitGenerator& generator);

/// A short convolution of a layer over so many channels, whose taps are predicted
/// from `query_channels`.
ShortConvOptions short_conv_options(
    const LayerShortConv& conv, int64_t channels, int64_t query_channels);

/// Says how the feed-forward network beside a mixer begins.
FeedForwardInit feed_forward_init(MixerKind kind);

}  // namespace seqconv::internal
