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
}

at::Tensor FeedForwardImpl::forward(const at::Tensor& x, DropoutPlan& plan) const {
  const at::Tensor hidden = ops::activation_dropout(
      fc1_->forward(x),
      options_.activation,
      plan.rate(options_.activation_dropout),
      plan.next_seed());
  return fc2_->forward(hidden);
}

}  // namespace seqconv::internal
