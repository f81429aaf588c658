#include "libtorch/nn/average_attention.h"

#include <ATen/ops/addcmul.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/sigmoid.h>

#include "libtorch/nn/linear.h"
#include "libtorch/nn/padding.h"
#include "seqconv/ops/cumulative_average.h"

namespace seqconv::internal {

at::Tensor average_attention_gate(
    const at::Tensor& x, const at::Tensor& g, const at::Tensor& weight, const at::Tensor& bias) {
  const auto gates =  // [B, T, C] twice
      at::sigmoid(project(at::cat({x, g}, -1), weight, bias)).chunk(2, -1);
  return at::addcmul(gates[0] * x, gates[1], g);
}

void AverageState::reorder(const at::Tensor& parents) {
  sums = at::index_select(sums, 0, parents);
}

AverageAttentionImpl::AverageAttentionImpl(
    const AverageAttentionOptions& options, const InitGenerator& generator)
    : options_(options) {
  const int64_t channels = options.channels;
  if (options.hidden > 0) {
    ffn_ = register_module(
        "ffn",
        FeedForward(
            FeedForwardOptions{
                .channels = channels,
                .hidden = options.hidden,
                .activation = ops::Activation::kRelu,
                .activation_dropout = options.activation_dropout},
            generator));
  }
  gate_ = register_module("gate", Linear(2 * channels, 2 * channels, generator));
}

at::Tensor AverageAttentionImpl::gated(
    const at::Tensor& x, const at::Tensor& average, DropoutPlan& plan) const {
  const at::Tensor g = ffn_.is_empty() ? average : ffn_->forward(average, {}, plan);
  return average_attention_gate(x, g, gate_->weight, gate_->bias);
}

at::Tensor AverageAttentionImpl::forward(
    const at::Tensor& x, const std::optional<at::Tensor>& lengths, DropoutPlan& plan) const {
  const at::Tensor input = zero_padding(x, lengths);
  return zero_padding(gated(input, ops::cumulative_average(input, lengths), plan), lengths);
}

at::Tensor AverageAttentionImpl::step(
    const at::Tensor& x, AverageState& state, const StepPosition& position) const {
  DropoutPlan evaluation;
  return gated(x, ops::cumulative_average_step(x, state.sums, position.tensor), evaluation);
}

AverageState AverageAttentionImpl::initial_state(int64_t rows) const {
  return {ops::average_initial_state(rows, options_.channels, gate_->weight.options())};
}

}  // namespace seqconv::internal
