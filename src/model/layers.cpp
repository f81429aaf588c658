#include "model/layers.h"

#include "model/mixer_rules.h"

namespace seqconv::internal {
namespace {

kernels::Activation activation_of(FeedForwardActivation choice, MixerKind kind) {
  switch (choice) {
    case FeedForwardActivation::kAuto:
      return default_activation(kind);
    case FeedForwardActivation::kRelu:
      return kernels::Activation::kRelu;
    case FeedForwardActivation::kSwish:
      return kernels::Activation::kSwish;
  }
  fail("unknown activation");
}

}  // namespace

LayerOptions layer_options(const ModelOptions& options, Task task, Side side, int64_t layer) {
  const bool decodes = side == Side::kDecoder;
  const StackOptions& stack = decodes ? options.decoder : options.encoder;
  LayerOptions result{
      .mixer = mixer_options(options, stack, layer, /*causal=*/decodes),
      .norm = options.norm_of(stack),
      .cross_heads = decodes && task == Task::kTranslation ? stack.heads : 0,
      .ffn_dim = options.ffn_dim_of(stack)};
  result.activation = activation_of(options.activation, result.mixer.kind);
  return result;
}

}  // namespace seqconv::internal
