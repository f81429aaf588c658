#include "libtorch/nn/feed_forward.h"

namespace seqconv::internal {
namespace {

Linear make_linear(int64_t in, int64_t out, FeedForwardInit init, const InitGenerator& generator) {
  Linear linear(in, out, generator);
  if (init == FeedForwardInit::kFanIn) {
    linear->draw_weight_by_fan_in(generator);
    linear->draw_bias_by_fan_in(generator);
  }
  return linear;
}

}  // namespace

FeedForwardImpl::FeedForwardImpl(const FeedForwardOptions& options, const InitGenerator& generator)
    : options_(options) {
  fc1_ = register_module(
      "fc1", make_linear(options.channels, options.hidden, options.init, generator));
  fc2_ = register_module(
      "fc2", make_linear(options.hidden, options.channels, options.init, generator));
  if (options.conv1)
    conv1_ = register_module("conv1", ShortConv(*options.conv1, generator));
  if (options.conv2)
    conv2_ = register_module("conv2", ShortConv(*options.conv2, generator));
}

at::Tensor FeedForwardImpl::activated(const at::Tensor& hidden, DropoutPlan& plan) const {
  return ops::activation_dropout(
      hidden, options_.activation, plan.rate(options_.activation_dropout), plan.next_seed());
}

at::Tensor FeedForwardImpl::forward(
    const at::Tensor& x, const std::optional<at::Tensor>& lengths, DropoutPlan& plan) const {
  const at::Tensor hidden = activated(convolve(conv1_, fc1_->forward(x), x, lengths), plan);
  return convolve(conv2_, fc2_->forward(hidden), hidden, lengths);
}

at::Tensor FeedForwardImpl::step(const at::Tensor& x, FeedForwardState& state) const {
  DropoutPlan evaluation;
  const at::Tensor hidden =
      activated(convolve_step(conv1_, fc1_->forward(x), x, state.conv1), evaluation);
  return convolve_step(conv2_, fc2_->forward(hidden), hidden, state.conv2);
}

FeedForwardState FeedForwardImpl::initial_state(int64_t rows) const {
  return {.conv1 = past_of(conv1_, rows), .conv2 = past_of(conv2_, rows)};
}

}  // namespace seqconv::internal
