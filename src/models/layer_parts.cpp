#include "seqconv/models/layer_parts.h"

#include "seqconv/ops/elementwise.h"

namespace seqconv {
namespace {

ops::Activation activation_of(FeedForwardActivation choice, BlockKind block) {
  switch (choice) {
    case FeedForwardActivation::kAuto:
      return block == BlockKind::kTalk ? ops::Activation::kSwish
                                       : ops::Activation::kRelu;
    case FeedForwardActivation::kRelu:
      return ops::Activation::kRelu;
    case FeedForwardActivation::kSwish:
      return ops::Activation::kSwish;
  }
  fail("unknown activation");
}

}  // namespace

EmbeddingOptions
embedding_options(const ModelOptions& options, Side side, int64_t vocabulary) {
  const StackOptions& stack =
      side == Side::kDecoder ? options.decoder : options.encoder;
  EmbeddingOptions result{
      .vocabulary = vocabulary,
      .dim = options.dim,
      .input_dim = side == Side::kDecoder ? options.input_dim : 0,
      .sinusoidal = options.positions_of(stack) == PositionKind::kSinusoidal,
      .learned = options.learned_positions(stack),
      .dropout = options.dropout};
  const AdaptiveOptions& adaptive = options.adaptive;
  if (!adaptive.input_cutoffs.empty())
    result.adaptive = AdaptiveInputOptions{
        .vocabulary = vocabulary,
        .channels = options.dim,
        .cutoffs = adaptive.input_cutoffs,
        .initial_dim = adaptive.input_dim,
        .factor = adaptive.input_factor,
        .fairseq_compatible = adaptive.fairseq_compatible};
  return result;
}

FeedForwardOptions feed_forward_options(
    const ModelOptions& options,
    const StackOptions& side,
    int64_t layer) {
  const BlockKind block = side.block_at(layer);
  return {
      .channels = options.dim,
      .hidden = options.ffn_dim_of(side),
      .activation = activation_of(options.activation, block),
      .activation_dropout = options.activation_dropout,
      .init = block == BlockKind::kSelfAttention ? FeedForwardInit::kFanIn
                                                 : FeedForwardInit::kXavier};
}

at::Tensor add_and_norm(
    const at::Tensor& x,
    const at::Tensor& residual,
    const LayerNorm& norm,
    NormPlacement placement,
    double dropout,
    DropoutPlan& plan) {
  if (placement == NormPlacement::kPost)
    return norm->add(x, residual, dropout, plan);
  return ops::dropout_add(x, residual, plan.rate(dropout), plan.next_seed());
}

at::Tensor maybe_norm(
    const at::Tensor& x,
    const LayerNorm& norm,
    NormPlacement placement) {
  return placement == NormPlacement::kPre ? norm->forward(x) : x;
}

}  // namespace seqconv
