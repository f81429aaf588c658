#include "libtorch/models/mixer.h"

#include <type_traits>

#include "libtorch/nn/attention.h"
#include "libtorch/nn/average_attention.h"
#include "libtorch/nn/cnn.h"
#include "libtorch/nn/dynamicconv.h"
#include "libtorch/nn/lightconv.h"
#include "libtorch/nn/linear.h"
#include "libtorch/nn/talk.h"
#include "libtorch/ops/elementwise.h"

namespace seqconv::internal {
namespace {

/// dropout -> linear1 -> gate -> convolution -> linear2, with Operator one of
/// LightConv, DynamicConv, Talk.
template <class Operator>
class ConvMixer : public Mixer {
 public:
  /// `conv` was drawn first.
  ConvMixer(
      const MixerOptions& mixer,
      double input_dropout,
      const InitGenerator& generator,
      Operator conv)
      : input_dropout_(input_dropout), glu_(mixer.glu), query_(mixer.query) {
    const int64_t dim = mixer.dim, width = mixer.conv_dim;
    linear1_ = register_module("linear1", Linear(dim, glu_ ? 2 * width : width, generator));
    conv_ = register_module("conv", std::move(conv));
    linear2_ = register_module("linear2", Linear(width, dim, generator));
  }

  at::Tensor forward(
      const at::Tensor& x,
      const std::optional<at::Tensor>& lengths,
      DropoutPlan& plan) const override {
    const at::Tensor dropped = ops::dropout(x, plan.rate(input_dropout_), plan.next_seed());
    // The operators count positions at and beyond a length as zero.
    if constexpr (kHasQuery)
      if (query_ == QuerySource::kBlockInput)
        return linear2_->forward(conv_->forward(gated(dropped), dropped, lengths, plan));
    return linear2_->forward(conv_->forward(gated(dropped), lengths, plan));
  }

  at::Tensor step(
      const at::Tensor& x, MixerState& state, const StepPosition& position) const override {
    ConvState& past = state.as<ConvState>();
    if constexpr (kHasQuery)
      if (query_ == QuerySource::kBlockInput)
        return linear2_->forward(conv_->step(gated(x), x, past, position));
    return linear2_->forward(conv_->step(gated(x), past, position));
  }

  MixerState initial_state(int64_t rows) const override { return conv_->initial_state(rows); }

 private:
  static constexpr bool kHasQuery = std::is_same_v<Operator, DynamicConv>;

  at::Tensor gated(const at::Tensor& x) const {
    const at::Tensor hidden = linear1_->forward(x);  // [B, T, 2D] or [B, T, D]
    return glu_ ? ops::glu(hidden) : hidden;
  }

  double input_dropout_;
  bool glu_;
  QuerySource query_;
  Linear linear1_{nullptr};
  Operator conv_{nullptr};
  Linear linear2_{nullptr};
};

/// A layer of nn that is a mixer by itself, with a State of steps. (The paper's
/// ordinary convolution has no projections around it either: Wu et al. 2019,
/// section 6.2.)
template <class Inner, class State>
class ModuleMixer : public Mixer {
 public:
  ModuleMixer(const char* name, Inner inner) { inner_ = register_module(name, std::move(inner)); }

  at::Tensor forward(
      const at::Tensor& x,
      const std::optional<at::Tensor>& lengths,
      DropoutPlan& plan) const override {
    if constexpr (std::is_same_v<Inner, Cnn>)
      return inner_->forward(x, lengths);
    else
      return inner_->forward(x, lengths, plan);
  }

  at::Tensor step(
      const at::Tensor& x, MixerState& state, const StepPosition& position) const override {
    return inner_->step(x, state.as<State>(), position);
  }

  MixerState initial_state(int64_t rows) const override { return inner_->initial_state(rows); }

 private:
  Inner inner_{nullptr};
};

ConvOptions conv_options(const ModelOptions& model, const MixerOptions& mixer) {
  return {
      .channels = mixer.conv_dim,
      .query_channels = mixer.query == QuerySource::kBlockInput ? mixer.dim : 0,
      .heads = mixer.heads,
      .kernel_size = mixer.kernel_size,
      .causal = mixer.causal,
      .weight_dropout = model.weight_dropout,
      .normalization = mixer.normalization,
      .renormalize_edges = mixer.renormalize_edges,
      .bias = mixer.conv_bias,
      .filter_bias = mixer.filter_bias};
}

TalkOptions talk_options(const ModelOptions& model, const MixerOptions& mixer) {
  return {
      .channels = mixer.conv_dim,
      .heads = mixer.heads,
      .max_offset = mixer.max_offset,
      .causal = mixer.causal,
      .offset_dropout = model.weight_dropout};
}

SelfAttentionOptions self_attention_options(const ModelOptions& model, const MixerOptions& mixer) {
  const int64_t dim = mixer.dim;
  SelfAttentionOptions options{
      .channels = dim,
      .heads = mixer.heads,
      .kernel_size = mixer.kernel_size,
      .causal = mixer.causal,
      .dropout = model.attention_dropout};
  if (mixer.short_conv.behind_qkv())
    options.in_conv = short_conv_options(mixer.short_conv, 3 * dim, dim);
  if (mixer.short_conv.behind_linear())
    options.out_conv = short_conv_options(mixer.short_conv, dim, dim);
  return options;
}

AverageAttentionOptions average_attention_options(
    const ModelOptions& model, const MixerOptions& mixer) {
  return {
      .channels = mixer.dim,
      .hidden = mixer.average_hidden,
      .activation_dropout = model.activation_dropout};
}

CnnOptions cnn_options(const MixerOptions& mixer) {
  return {
      .channels = mixer.dim,
      .kernel_size = mixer.kernel_size,
      .causal = mixer.causal,
      .bias = mixer.conv_bias};
}

}  // namespace

std::shared_ptr<Mixer> make_mixer(
    const ModelOptions& model, const MixerOptions& mixer, const InitGenerator& generator) {
  const auto surround = [&]<class Operator>(Operator conv) {
    return std::make_shared<ConvMixer<Operator>>(
        mixer, model.input_dropout, generator, std::move(conv));
  };
  switch (mixer.kind) {
    case MixerKind::kLightConv:
      return surround(LightConv(conv_options(model, mixer), generator));
    case MixerKind::kDynamicConv:
      return surround(DynamicConv(conv_options(model, mixer), generator));
    case MixerKind::kTalk:
      return surround(Talk(talk_options(model, mixer), generator));
    case MixerKind::kSelfAttention:
      return std::make_shared<ModuleMixer<SelfAttention, AttentionState>>(
          "attention", SelfAttention(self_attention_options(model, mixer), generator));
    case MixerKind::kAverageAttention:
      return std::make_shared<ModuleMixer<AverageAttention, AverageState>>(
          "attention", AverageAttention(average_attention_options(model, mixer), generator));
    case MixerKind::kCnn:
      return std::make_shared<ModuleMixer<Cnn, ConvState>>(
          "conv", Cnn(cnn_options(mixer), generator));
  }
  fail("unknown block kind");
}

ShortConvOptions short_conv_options(
    const LayerShortConv& conv, int64_t channels, int64_t query_channels) {
  return {
      .channels = channels,
      .query_channels = query_channels,
      .groups = conv.groups(channels),
      .heads = conv.heads(channels),
      .rank = conv.taps == ShortConvTaps::kLowRank ? conv.rank : 0,
      .kernel_size = conv.kernel_size,
      .causal = conv.causal,
      .bias = conv.bias,
      .activation = conv.activation,
      .residual = conv.residual};
}

FeedForwardInit feed_forward_init(MixerKind kind) {
  return kind == MixerKind::kSelfAttention ? FeedForwardInit::kFanIn : FeedForwardInit::kXavier;
}

}  // namespace seqconv::internal
