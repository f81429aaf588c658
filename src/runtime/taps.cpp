#include "runtime/taps.h"

namespace seqconv::internal::runtime {

std::vector<float> conv_bias(
    const MixerOptions& options, const Weights& weights, const std::string& name) {
  return options.conv_bias ? weights.numbers(name + "conv.bias") : std::vector<float>();
}

TapConvolution::TapConvolution(
    const MixerOptions& options, const Weights& weights, const std::string& name)
    : options_(options),
      maker_(
          {.normalization = options.normalization,
           .renormalize_edges = options.renormalize_edges,
           .heads = options.heads,
           .kernel_size = options.kernel_size}),
      bias_(conv_bias(options, weights, name)) {}

kernels::ConvForward<float, float> TapConvolution::sequence(
    const Sequences& sequences, int64_t i, const float* h, float* y) const {
  const int64_t at = sequences.first(i) * options_.conv_dim;
  return {
      .shape =
          {.batch = 1,
           .steps = sequences.length(i),
           .channels = options_.conv_dim,
           .heads = options_.heads,
           .kernel_size = options_.kernel_size,
           .padding_left = options_.padding_left()},
      .softmax = options_.normalization == kernels::Normalization::kSoftmax,
      .renormalize_edges = options_.renormalize_edges,
      .x = h + at,
      .bias = bias(),
      .y = y + at};
}

std::vector<float> TapConvolution::by_channel(const float* taps) const {
  const int64_t D = options_.conv_dim, R = D / options_.heads, K = options_.kernel_size;
  std::vector<float> spread;
  if (R >= kernels::kNarrowHead)
    return spread;
  spread.reserve(static_cast<size_t>(K * D));
  for (int64_t j = 0; j < K; ++j)
    for (int64_t h = 0; h < options_.heads; ++h)
      spread.insert(spread.end(), static_cast<size_t>(R), taps[h * maker_.stride() + j]);
  return spread;
}

PositionWeights TapConvolution::taps_of(WeightForm form, int64_t rows, const float* logits) const {
  const int64_t H = options_.heads, K = options_.kernel_size;
  PositionWeights found{form, H, K, options_.padding_left()};
  std::vector<float> made(static_cast<size_t>(maker_.size()));
  for (int64_t r = 0; r < rows; ++r) {
    maker_.make(logits + r * H * K, K, made.data());
    for (int64_t h = 0; h < H; ++h) {
      const float* const taps = made.data() + h * maker_.stride();
      found.values.insert(found.values.end(), taps, taps + K);
    }
  }
  return found;
}

void TapConvolution::renormalize(PositionWeights& taps) const {
  if (!options_.renormalize_edges)
    return;
  const int64_t steps = taps.rows(), K = taps.width;
  for (int64_t r = 0; r < steps * taps.heads; ++r) {
    const int64_t first = taps.padding_left - r / taps.heads;
    float* const own = taps.values.data() + r * K;
    double inside = 0;
    for (int64_t j = 0; j < K; ++j) {
      if (j < first || j >= first + steps)
        own[j] = 0;
      inside += own[j];
    }
    for (int64_t j = 0; j < K; ++j)
      own[j] = static_cast<float>(own[j] / inside);
  }
}

}  // namespace seqconv::internal::runtime
