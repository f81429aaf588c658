#include <algorithm>
#include <limits>

#include "kernels/conv/conv_kernels.h"
#include "kernels/decoding/decoding_ops.h"

namespace seqconv::internal::kernels {
namespace {

const DecodingOps& best_ops() {
  return decoding_ops(best_isa());
}

}  // namespace

void normalize_taps(Normalization normalization, float* w, int64_t count, int64_t kernel_size) {
  // Of most models: not one call for every position and head.
  if (normalization == Normalization::kSoftmax || normalization == Normalization::kNone)
    return;
  for (int64_t n = 0; n < count; ++n)
    best_ops().normalize(normalization, w + n * kernel_size, kernel_size);
}

int64_t TapMaker::stride() const {
  return tap_pitch(kernel_size);
}

int64_t TapMaker::size() const {
  return heads * stride() + kTapSlack;
}

void TapMaker::make(const float* logits, int64_t seen, float* taps) const {
  const int64_t K = kernel_size, pitch = stride();
  const bool cut = renormalize_edges && seen < K;
  for (int64_t h = 0; h < heads; ++h) {
    float* const tap = taps + h * pitch;
    std::copy_n(logits + h * K, K, tap);
    if (cut)  // or what it lacks might be far larger than what is there
      std::fill_n(tap, K - seen, -std::numeric_limits<float>::infinity());
    std::fill_n(tap + K, pitch - K, 0.0F);
  }
  if (normalization == Normalization::kSoftmax)
    conv_kernels<float, float>(best_isa())
        .softmax(
            {.logits = taps,
             .logit_stride = pitch,
             .rows = heads,
             .heads = 1,
             .kernel_size = K,
             .w = taps});
  else
    for (int64_t h = 0; h < heads; ++h)
      best_ops().normalize(normalization, taps + h * pitch, K);
}

void weighted_rows(const WeightedRows& args, const SeenRows& x, float* y) {
  best_ops().weigh(args, x, y);
}

void weighted_channels(const WeightedChannels& args, const SeenRows& x, float* y) {
  best_ops().weigh_by_channel(args, x, y);
}

void attend(const AttentionRow& args, float* y) {
  best_ops().attend(args, y);
}

void attend_source(
    const SeenSource& source, int64_t rows, const float* queries, float* scores, float* y) {
  best_ops().attend_source(source, rows, queries, scores, y);
}

void average_gate(const AverageGate& args, int64_t channels, float* y) {
  best_ops().gate(args, channels, y);
}

void sigmoid_row(const float* x, int64_t count, float* y) {
  best_ops().sigmoid(x, count, y);
}

void log_softmax_row(float* x, int64_t count) {
  best_ops().log_softmax(x, count);
}

SoftmaxTerms softmax_terms(const float* x, int64_t count, float* maxima) {
  return best_ops().softmax_terms(x, count, maxima);
}

}  // namespace seqconv::internal::kernels
