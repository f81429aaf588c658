#include "seqconv/architecture/layers.h"

#include "seqconv/base/error.h"

namespace seqconv {
namespace {

MixerOptions mixer_options(
    const ModelOptions& model,
    const StackOptions& stack,
    int64_t layer) {
  MixerOptions mixer{.kind = stack.block_at(layer), .dim = model.dim};
  mixer.heads = stack.conv_heads_at(layer);
  mixer.kernel_size = stack.kernel_size_at(layer);
  switch (mixer.kind) {
    case BlockKind::kLightConv:
    case BlockKind::kDynamicConv:
    case BlockKind::kTalk:
      mixer.conv_dim = stack.conv_dim_at(layer, model.dim);
      mixer.glu = stack.glu_at(layer);
      mixer.max_offset = stack.max_offset_at(layer);
      mixer.normalization = stack.normalization_at(layer);
      mixer.renormalize_edges = stack.renormalize_edges_at(layer);
      mixer.conv_bias = stack.conv_bias_at(layer);
      mixer.filter_bias = stack.filter_bias_at(layer);
      if (mixer.kind == BlockKind::kDynamicConv)
        mixer.query = stack.query_at(layer);
      return mixer;
    case BlockKind::kSelfAttention:
      mixer.heads = stack.heads;
      return mixer;
    case BlockKind::kAverageAttention:
      if (stack.average_ffn_at(layer))
        mixer.average_hidden = model.ffn_dim_of(stack);
      return mixer;
    case BlockKind::kCnn:
      mixer.conv_bias = stack.conv_bias_at(layer);
      return mixer;
  }
  fail("unknown block kind");
}

kernels::Activation activation_of(
    FeedForwardActivation choice,
    BlockKind kind) {
  switch (choice) {
    case FeedForwardActivation::kAuto:
      return kind == BlockKind::kTalk ? kernels::Activation::kSwish
                                      : kernels::Activation::kRelu;
    case FeedForwardActivation::kRelu:
      return kernels::Activation::kRelu;
    case FeedForwardActivation::kSwish:
      return kernels::Activation::kSwish;
  }
  fail("unknown activation");
}

}  // namespace

LayerOptions layer_options(
    const ModelOptions& options,
    Task task,
    Side side,
    int64_t layer) {
  const bool decodes = side == Side::kDecoder;
  const StackOptions& stack = decodes ? options.decoder : options.encoder;
  LayerOptions result{
      .mixer = mixer_options(options, stack, layer),
      .norm = options.norm_of(stack),
      .cross_heads = decodes && task == Task::kTranslation ? stack.heads : 0,
      .ffn_dim = options.ffn_dim_of(stack)};
  result.mixer.causal = decodes;
  result.activation = activation_of(options.activation, result.mixer.kind);
  return result;
}

}  // namespace seqconv
