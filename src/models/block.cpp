#include "seqconv/models/block.h"

#include "seqconv/nn/attention.h"
#include "seqconv/nn/dynamicconv.h"
#include "seqconv/nn/lightconv.h"
#include "seqconv/nn/linear.h"
#include "seqconv/nn/talk.h"
#include "seqconv/ops/elementwise.h"

namespace seqconv {
namespace {

struct ConvBlockOptions {
  int64_t dim = 0;
  bool glu = true;
  double input_dropout = 0;
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
    const int64_t dim = options.dim;
    linear1_ = register_module(
        "linear1",
        Linear(dim, options.glu ? 2 * dim : dim, generator));
    conv_ = register_module("conv", std::move(conv));
    linear2_ = register_module("linear2", Linear(dim, dim, generator));
  }

  at::Tensor forward(
      const at::Tensor& x,
      const std::optional<at::Tensor>& lengths,
      DropoutPlan& plan) const override {
    const at::Tensor dropped =
        ops::dropout(x, plan.rate(options_.input_dropout), plan.next_seed());
    // The operators count positions at and beyond a length as zero.
    return linear2_->forward(conv_->forward(gated(dropped), lengths, plan));
  }

  at::Tensor step(
      const at::Tensor& x,
      MixerState& state,
      const StepPosition& position) const override {
    return linear2_->forward(
        conv_->step(gated(x), std::get<ConvState>(state), position));
  }

  MixerState initial_state(int64_t rows) const override {
    return conv_->initial_state(rows);
  }

 private:
  at::Tensor gated(const at::Tensor& x) const {
    const at::Tensor hidden = linear1_->forward(x);  // [B, T, 2C] or [B, T, C]
    return options_.glu ? ops::glu(hidden) : hidden;
  }

  ConvBlockOptions options_;
  Linear linear1_{nullptr};
  Operator conv_{nullptr};
  Linear linear2_{nullptr};
};

class SelfAttentionBlock : public Block {
 public:
  SelfAttentionBlock(
      const SelfAttentionOptions& options,
      const InitGenerator& generator) {
    attention_ =
        register_module("attention", SelfAttention(options, generator));
  }

  at::Tensor forward(
      const at::Tensor& x,
      const std::optional<at::Tensor>& lengths,
      DropoutPlan& plan) const override {
    return attention_->forward(x, lengths, plan);
  }

  at::Tensor step(
      const at::Tensor& x,
      MixerState& state,
      const StepPosition& position) const override {
    return attention_->step(x, std::get<AttentionState>(state), position);
  }

  MixerState initial_state(int64_t rows) const override {
    return attention_->initial_state(rows);
  }

 private:
  SelfAttention attention_{nullptr};
};

}  // namespace

std::shared_ptr<Block> make_block(
    const ModelOptions& options,
    Side side,
    int64_t layer,
    const InitGenerator& generator) {
  const bool causal = side == Side::kDecoder;
  const StackOptions& stack = causal ? options.decoder : options.encoder;
  const ConvBlockOptions block{options.dim, stack.glu, options.input_dropout};
  const ConvOptions conv{
      .channels = options.dim,
      .heads = stack.conv_heads_or_heads(),
      .kernel_size = stack.kernel_size_at(layer),
      .causal = causal,
      .weight_dropout = options.weight_dropout};
  switch (stack.block_at(layer)) {
    case BlockKind::kLightConv:
      return std::make_shared<ConvBlock<LightConv>>(
          block,
          generator,
          LightConv(conv, generator));
    case BlockKind::kDynamicConv:
      return std::make_shared<ConvBlock<DynamicConv>>(
          block,
          generator,
          DynamicConv(conv, generator));
    case BlockKind::kTalk:
      return std::make_shared<ConvBlock<Talk>>(
          block,
          generator,
          Talk(
              TalkOptions{
                  .channels = options.dim,
                  .heads = stack.conv_heads_or_heads(),
                  .max_offset = stack.max_offset_at(layer),
                  .causal = causal,
                  .offset_dropout = options.weight_dropout},
              generator));
    case BlockKind::kSelfAttention:
      return std::make_shared<SelfAttentionBlock>(
          SelfAttentionOptions{
              .channels = options.dim,
              .heads = stack.heads,
              .kernel_size = stack.kernel_size_at(layer),
              .causal = causal,
              .dropout = options.attention_dropout},
          generator);
  }
  fail("unknown block kind");
}

}  // namespace seqconv
