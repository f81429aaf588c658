#include "seqconv/models/block.h"

#include <type_traits>

#include "seqconv/nn/attention.h"
#include "seqconv/nn/average_attention.h"
#include "seqconv/nn/dense_conv.h"
#include "seqconv/nn/dynamicconv.h"
#include "seqconv/nn/lightconv.h"
#include "seqconv/nn/linear.h"
#include "seqconv/nn/talk.h"
#include "seqconv/ops/elementwise.h"

namespace seqconv {
namespace {

struct ConvBlockOptions {
  int64_t dim = 0;
  int64_t conv_dim = 0;  ///< channels of the convolution
  bool glu = true;
  double input_dropout = 0;
  QuerySource query = QuerySource::kConvInput;  ///< DynamicConv only
};

/// dropout -> linear1 -> gate -> convolution -> linear2, with Operator one of
/// LightConv, DynamicConv, Talk.
template <class Operator>
class ConvBlock : public Block {
 public:
  ConvBlock(
      const ConvBlockOptions& options,
      const InitGenerator& generator,
      Operator conv)
      : options_(options) {
    const int64_t width = options.conv_dim;
    linear1_ = register_module(
        "linear1",
        Linear(options.dim, options.glu ? 2 * width : width, generator));
    conv_ = register_module("conv", std::move(conv));
    linear2_ =
        register_module("linear2", Linear(width, options.dim, generator));
  }

  at::Tensor forward(
      const at::Tensor& x,
      const std::optional<at::Tensor>& lengths,
      DropoutPlan& plan) const override {
    const at::Tensor dropped =
        ops::dropout(x, plan.rate(options_.input_dropout), plan.next_seed());
    // The operators count positions at and beyond a length as zero.
    if constexpr (kHasQuery)
      if (options_.query == QuerySource::kBlockInput)
        return linear2_->forward(
            conv_->forward(gated(dropped), dropped, lengths, plan));
    return linear2_->forward(conv_->forward(gated(dropped), lengths, plan));
  }

  at::Tensor step(
      const at::Tensor& x,
      MixerState& state,
      const StepPosition& position) const override {
    ConvState& past = std::get<ConvState>(state);
    if constexpr (kHasQuery)
      if (options_.query == QuerySource::kBlockInput)
        return linear2_->forward(conv_->step(gated(x), x, past, position));
    return linear2_->forward(conv_->step(gated(x), past, position));
  }

  MixerState initial_state(int64_t rows) const override {
    return conv_->initial_state(rows);
  }

 private:
  static constexpr bool kHasQuery = std::is_same_v<Operator, DynamicConv>;

  at::Tensor gated(const at::Tensor& x) const {
    const at::Tensor hidden = linear1_->forward(x);  // [B, T, 2D] or [B, T, D]
    return options_.glu ? ops::glu(hidden) : hidden;
  }

  ConvBlockOptions options_;
  Linear linear1_{nullptr};
  Operator conv_{nullptr};
  Linear linear2_{nullptr};
};

/// A layer of nn that is a block by itself, remembering a State. (The paper's
/// ordinary convolution has no projections around it either: Wu et al. 2019,
/// section 6.2.)
template <class Mixer, class State>
class MixerBlock : public Block {
 public:
  MixerBlock(const char* name, Mixer mixer) {
    mixer_ = register_module(name, std::move(mixer));
  }

  at::Tensor forward(
      const at::Tensor& x,
      const std::optional<at::Tensor>& lengths,
      DropoutPlan& plan) const override {
    if constexpr (std::is_same_v<Mixer, DenseConv>)
      return mixer_->forward(x, lengths);
    else
      return mixer_->forward(x, lengths, plan);
  }

  at::Tensor step(
      const at::Tensor& x,
      MixerState& state,
      const StepPosition& position) const override {
    return mixer_->step(x, std::get<State>(state), position);
  }

  MixerState initial_state(int64_t rows) const override {
    return mixer_->initial_state(rows);
  }

 private:
  Mixer mixer_{nullptr};
};

/// One layer of one side, and what its options say.
struct Place {
  const ModelOptions& model;
  const StackOptions& stack;
  int64_t layer = 0;
  bool causal = false;

  int64_t conv_dim() const { return stack.conv_dim_at(layer, model.dim); }
};

ConvOptions conv_options(const Place& place) {
  const StackOptions& stack = place.stack;
  const bool block_input =
      stack.query_at(place.layer) == QuerySource::kBlockInput;
  return {
      .channels = place.conv_dim(),
      .query_channels = block_input ? place.model.dim : 0,
      .heads = stack.conv_heads_at(place.layer),
      .kernel_size = stack.kernel_size_at(place.layer),
      .causal = place.causal,
      .weight_dropout = place.model.weight_dropout,
      .normalization = stack.normalization_at(place.layer),
      .renormalize_edges = stack.renormalize_edges_at(place.layer),
      .bias = stack.conv_bias_at(place.layer),
      .filter_bias = stack.filter_bias_at(place.layer)};
}

TalkOptions talk_options(const Place& place) {
  return {
      .channels = place.conv_dim(),
      .heads = place.stack.conv_heads_at(place.layer),
      .max_offset = place.stack.max_offset_at(place.layer),
      .causal = place.causal,
      .offset_dropout = place.model.weight_dropout};
}

SelfAttentionOptions self_attention_options(const Place& place) {
  return {
      .channels = place.model.dim,
      .heads = place.stack.heads,
      .kernel_size = place.stack.kernel_size_at(place.layer),
      .causal = place.causal,
      .dropout = place.model.attention_dropout};
}

AverageAttentionOptions average_attention_options(const Place& place) {
  return {
      .channels = place.model.dim,
      .hidden = place.stack.average_ffn_at(place.layer)
          ? place.model.ffn_dim_of(place.stack)
          : 0,
      .activation_dropout = place.model.activation_dropout};
}

DenseConvOptions dense_conv_options(const Place& place) {
  return {
      .channels = place.model.dim,
      .kernel_size = place.stack.kernel_size_at(place.layer),
      .causal = place.causal,
      .bias = place.stack.conv_bias_at(place.layer)};
}

/// The projections around `conv`, which was drawn first.
template <class Operator>
std::shared_ptr<Block>
surround(const Place& place, const InitGenerator& generator, Operator conv) {
  const ConvBlockOptions options{
      .dim = place.model.dim,
      .conv_dim = place.conv_dim(),
      .glu = place.stack.glu_at(place.layer),
      .input_dropout = place.model.input_dropout,
      .query = place.stack.query_at(place.layer)};
  return std::make_shared<ConvBlock<Operator>>(
      options,
      generator,
      std::move(conv));
}

}  // namespace

std::shared_ptr<Block> make_block(
    const ModelOptions& options,
    Side side,
    int64_t layer,
    const InitGenerator& generator) {
  const bool causal = side == Side::kDecoder;
  const Place place{
      options,
      causal ? options.decoder : options.encoder,
      layer,
      causal};
  switch (place.stack.block_at(layer)) {
    case BlockKind::kLightConv:
      return surround(
          place,
          generator,
          LightConv(conv_options(place), generator));
    case BlockKind::kDynamicConv:
      return surround(
          place,
          generator,
          DynamicConv(conv_options(place), generator));
    case BlockKind::kTalk:
      return surround(place, generator, Talk(talk_options(place), generator));
    case BlockKind::kSelfAttention:
      return std::make_shared<MixerBlock<SelfAttention, AttentionState>>(
          "attention",
          SelfAttention(self_attention_options(place), generator));
    case BlockKind::kAverageAttention:
      return std::make_shared<MixerBlock<AverageAttention, AverageState>>(
          "attention",
          AverageAttention(average_attention_options(place), generator));
    case BlockKind::kCnn:
      return std::make_shared<MixerBlock<DenseConv, ConvState>>(
          "conv",
          DenseConv(dense_conv_options(place), generator));
  }
  fail("unknown block kind");
}

}  // namespace seqconv
