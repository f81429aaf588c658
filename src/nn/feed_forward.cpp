#include "seqconv/nn/feed_forward.h"

namespace seqconv {

FeedForwardImpl::FeedForwardImpl(
    const FeedForwardOptions& options,
    const InitGenerator& generator)
    : options_(options) {
  fc1_ = register_module(
      "fc1",
      Linear(options.channels, options.hidden, generator));
  fc2_ = register_module(
      "fc2",
      Linear(options.hidden, options.channels, generator));
}

at::Tensor FeedForwardImpl::forward(const at::Tensor& x, DropoutPlan& plan)
    const {
  const at::Tensor hidden = ops::activation_dropout(
      fc1_->forward(x),
      options_.activation,
      plan.rate(options_.activation_dropout),
      plan.next_seed());
  return fc2_->forward(hidden);
}

}  // namespace seqconv
