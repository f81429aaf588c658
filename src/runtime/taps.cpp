#include "taps.h"

namespace seqconv::runtime {

std::vector<float> conv_bias(
    const MixerOptions& options,
    const Weights& weights,
    const std::string& name) {
  return options.conv_bias ? weights.numbers(name + "conv.bias")
                           : std::vector<float>();
}

TapConvolution::TapConvolution(
    const MixerOptions& options,
    const Weights& weights,
    const std::string& name)
    : options_(options),
      maker_(
          {.normalization = options.normalization,
           .renormalize_edges = options.renormalize_edges,
           .heads = options.heads,
           .kernel_size = options.kernel_size}),
      bias_(conv_bias(options, weights, name)) {}

kernels::ConvForward<float, float> TapConvolution::sequence(
    const Sequences& sequences,
    int64_t i,
    const float* h,
    float* y) const {
  const int64_t at = sequences.first(i) * options_.conv_dim;
  return {
      .shape =
          {.batch = 1,
           .steps = sequences.length(i),
           .channels = options_.conv_dim,
           .heads = options_.heads,
           .kernel_size = options_.kernel_size,
           .padding_left = options_.padding_left()},
      .normalization = options_.normalization,
      .renormalize_edges = options_.renormalize_edges,
      .x = h + at,
      .bias = bias(),
      .y = y + at};
}

}  // namespace seqconv::runtime
