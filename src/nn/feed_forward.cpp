#include "seqconv/nn/feed_forward.h"

#include <cmath>

namespace seqconv {
namespace {

Linear make_linear(
    int64_t in,
    int64_t out,
    FeedForwardInit init,
    const InitGenerator& generator) {
  // Xavier's bound is gain * sqrt(6 / (in + out)).
  const double gain = init == FeedForwardInit::kFanIn
      ? std::sqrt(static_cast<double>(in + out) / static_cast<double>(6 * in))
      : 1.0;
  return Linear(in, out, generator, /*blocks=*/1, gain);
}

}  // namespace

FeedForwardImpl::FeedForwardImpl(
    const FeedForwardOptions& options,
    const InitGenerator& generator)
    : options_(options) {
  fc1_ = register_module(
      "fc1",
      make_linear(options.channels, options.hidden, options.init, generator));
  fc2_ = register_module(
      "fc2",
      make_linear(options.hidden, options.channels, options.init, generator));
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
