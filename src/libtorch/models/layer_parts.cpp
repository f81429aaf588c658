#include "libtorch/models/layer_parts.h"

#include "libtorch/ops/elementwise.h"

namespace seqconv::internal {

EmbeddingOptions embedding_options(const ModelOptions& options, Side side, int64_t vocabulary) {
  const StackOptions& stack = side == Side::kDecoder ? options.decoder : options.encoder;
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

FeedForwardOptions feed_forward_options(const ModelOptions& model, const LayerOptions& layer) {
  const int64_t dim = model.dim, hidden = layer.ffn_dim;
  FeedForwardOptions options{
      .channels = dim,
      .hidden = hidden,
      .activation = layer.activation,
      .activation_dropout = model.activation_dropout,
      .init = feed_forward_init(layer.mixer.kind)};
  if (const LayerShortConv& conv = layer.mixer.short_conv; conv.behind_linear()) {
    options.conv1 = short_conv_options(conv, hidden, dim);
    options.conv2 = short_conv_options(conv, dim, hidden);
  }
  return options;
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

at::Tensor maybe_norm(const at::Tensor& x, const LayerNorm& norm, NormPlacement placement) {
  return placement == NormPlacement::kPre ? norm->forward(x) : x;
}

}  // namespace seqconv::internal
