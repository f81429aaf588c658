#include "new_mixer.h"

#include <seqconv/ops/dynamicconv.h>
#include <seqconv/ops/lightconv.h>

namespace ops = seqconv::ops;

void reorder(NewMixerState& state, const at::Tensor& rows) {
  state.window = state.window.index_select(0, rows);
}

NewMixerImpl::NewMixerImpl(const NewMixerOptions& mixer_options) : options(mixer_options) {
  reset();
}

void NewMixerImpl::reset() {
  const int64_t channels = options.channels();
  using torch::nn::Linear;
  using torch::nn::LinearOptions;
  qv = register_module("qv", Linear(LinearOptions(channels, 2 * channels).bias(false)));
  taps = register_module("taps", Linear(channels, options.heads() * options.kernel_size()));
  out = register_module("out", Linear(LinearOptions(channels, channels).bias(false)));
}

NewMixerImpl::Projected NewMixerImpl::project(const at::Tensor& x) {
  const auto halves = qv->forward(x).chunk(2, -1);
  const at::Tensor logits =
      taps->forward(x).view({x.size(0), x.size(1), options.heads(), options.kernel_size()});
  return {halves[0], halves[1], logits};
}

at::Tensor NewMixerImpl::forward(const at::Tensor& x, const std::optional<at::Tensor>& lengths) {
  const auto [gate, value, logits] = project(x);
  ops::ConvOptions conv;
  conv.padding_left = options.kernel_size() - 1;
  conv.lengths = lengths;
  const at::Tensor mixed = ops::dynamicconv(value, logits, conv);
  return out->forward(gate * mixed);
}

NewMixerState NewMixerImpl::initial_state(int64_t rows) const {
  const at::TensorOptions type = out->weight.options();
  return {
      ops::conv_initial_state(rows, options.kernel_size(), options.channels(), type),
      at::zeros({1}, type.dtype(at::kLong))};
}

at::Tensor NewMixerImpl::step(const at::Tensor& x, NewMixerState& state) {
  const at::NoGradGuard no_grad;
  const auto [gate, value, logits] = project(x);
  const at::Tensor mixed = ops::dynamicconv_step(value, state.window, state.position, logits);
  state.position.add_(x.size(1));
  return out->forward(gate * mixed);
}
