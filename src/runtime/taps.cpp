#include "taps.h"

namespace seqconv::runtime {

kernels::ConvShape conv_shape(const MixerOptions& options, int64_t steps) {
  return {
      .batch = 1,
      .steps = steps,
      .channels = options.conv_dim,
      .heads = options.heads,
      .kernel_size = options.kernel_size,
      .padding_left = options.padding_left()};
}

kernels::TapMaker tap_maker(const MixerOptions& options) {
  return {
      .normalization = options.normalization,
      .renormalize_edges = options.renormalize_edges,
      .heads = options.heads,
      .kernel_size = options.kernel_size};
}

std::vector<float> conv_bias(
    const MixerOptions& options,
    const Weights& weights,
    const std::string& name) {
  return options.conv_bias ? weights.numbers(name + "conv.bias")
                           : std::vector<float>();
}

}  // namespace seqconv::runtime
