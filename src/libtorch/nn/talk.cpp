#include "libtorch/nn/talk.h"

#include <ATen/ops/promote_types.h>
#include <ATen/ops/sigmoid.h>

#include "libtorch/ops/elementwise.h"
#include "seqconv/ops/talk.h"

namespace seqconv::internal {

TalkImpl::TalkImpl(const TalkOptions& options, const InitGenerator& generator) : options_(options) {
  const int64_t outputs = options.causal ? options.heads : 2 * options.heads;
  offsets_ = register_module("offsets", Linear(options.channels, outputs, generator));
  offsets_->draw_weight_by_fan_in(generator);
  offsets_->draw_bias_by_fan_in(generator);
}

at::Tensor TalkImpl::relative_offsets(const at::Tensor& x) const {
  const at::Tensor logits = offsets_->forward(x);
  return at::sigmoid(logits.to(at::promote_types(logits.scalar_type(), at::kFloat)));
}

at::Tensor TalkImpl::forward(
    const at::Tensor& x, const std::optional<at::Tensor>& lengths, DropoutPlan& plan) const {
  const at::Tensor offsets = ops::dropout(  // [B, T, 2H] or [B, T, H]
      relative_offsets(x),
      plan.rate(options_.offset_dropout),
      plan.next_seed());
  if (options_.causal) {
    return ops::talk(
        x, offsets, {}, {.max_left = options_.max_offset, .max_right = 0, .lengths = lengths});
  }
  return ops::talk(
      x,
      offsets.narrow(-1, 0, options_.heads),
      offsets.narrow(-1, options_.heads, options_.heads),
      {.max_left = options_.max_offset, .max_right = options_.max_offset, .lengths = lengths});
}

at::Tensor TalkImpl::step(
    const at::Tensor& x, ConvState& state, const StepPosition& position) const {
  return ops::talk_step(x, state.window, position.tensor, relative_offsets(x), options_.max_offset);
}

ConvState TalkImpl::initial_state(int64_t rows) const {
  return {ops::talk_initial_state(
      rows, options_.max_offset, options_.channels, offsets_->weight.options())};
}

}  // namespace seqconv::internal
