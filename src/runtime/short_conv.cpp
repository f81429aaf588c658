#include "runtime/short_conv.h"

#include <algorithm>

#include "kernels/conv.h"
#include "runtime/taps.h"

namespace seqconv::internal::runtime {
namespace {

/// Numbers of predicted taps that exist at a time.
constexpr int64_t kPredictedAtATime = 1 << 20;

}  // namespace

ShortConv::ShortConv(
    const LayerShortConv& options,
    int64_t channels,
    const Weights& weights,
    const std::string& name)
    : options_(options),
      channels_(channels),
      groups_(options.groups(channels)),
      heads_(options.heads(channels)),
      taps_(weights.numbers(name + ".weight")),
      taps_by_channel_(static_cast<size_t>(options.kernel_size * channels)) {
  const int64_t K = options.kernel_size;
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t j = 0; j < K; ++j)
      taps_by_channel_[static_cast<size_t>(j * channels + c)] =
          taps_[static_cast<size_t>(c / options.group_channels * K + j)];
  if (options.bias)
    bias_ = weights.numbers(name + ".bias");
  if (options.taps == ShortConvTaps::kLowRank)
    narrow_ = weights.matrix(name + ".narrow");
  if (options.predicts())
    predict_ = weights.matrix(name + ".weight_linear");
}

void ShortConv::run(
    const RowOrder& order,
    RowLog* log,
    const float* x,
    const float* query,
    float* y,
    Workspace& space) const {
  if (order.sequences != nullptr)
    run_sequences(*order.sequences, x, query, y, space);
  else
    run_steps(*order.ancestry, *log, x, query, y, space);
}

void ShortConv::run_sequences(
    const Sequences& sequences,
    const float* x,
    const float* query,
    float* y,
    Workspace& space) const {
  if (!options_.causal || sequences.rows() <= rows_at_a_time())
    return convolve(sequences.begin, nullptr, x, query, y, space);
  const int64_t C = channels_, Q = query_channels(), before = options_.kernel_size - 1;
  for (int64_t i = 0; i < sequences.count(); ++i)
    for (int64_t from = sequences.first(i), rows = 0; from < sequences.first(i + 1); from += rows) {
      rows = std::min(std::max(rows_at_a_time(), before), sequences.first(i + 1) - from);
      const int64_t offsets[] = {0, rows};
      const bool begins = from == sequences.first(i);
      convolve(
          offsets,
          begins ? nullptr : x + (from - before) * C,
          x + from * C,
          query + from * Q,
          y + from * C,
          space);
    }
}

void ShortConv::convolve(
    std::span<const int64_t> offsets,
    const float* past,
    const float* x,
    const float* query,
    float* y,
    Workspace& space) const {
  Workspace::Frame frame(space);
  kernels::ConvForward<float, float> pass{
      .shape =
          {.batch = static_cast<int64_t>(offsets.size()) - 1,
           .channels = channels_,
           .heads = predict_ ? heads_ : groups_,
           .kernel_size = options_.kernel_size,
           .padding_left = options_.padding_left()},
      .softmax = false,
      .x = x,
      .logits = taps_.data(),
      .bias = bias(),
      .offsets = offsets.data(),
      .past = past,
      .end = {options_.activation, options_.residual},
      .y = y};
  const kernels::Execution run{.parallel_for = threads()};
  if (!predict_)
    return kernels::lightconv_forward<float>(pass, run);
  float* const taps = frame.take(offsets.back() * heads_ * options_.kernel_size);
  predict(offsets.back(), query, taps, space);
  pass.logits = taps;
  pass.added = {taps_.data(), groups_};
  kernels::dynamicconv_forward<float, float>(pass, run);
}

void ShortConv::run_steps(
    const Ancestry& ancestry,
    RowLog& log,
    const float* x,
    const float* query,
    float* y,
    Workspace& space) const {
  Workspace::Frame frame(space);
  const int64_t C = channels_, K = options_.kernel_size, Q = query_channels();
  const int64_t rows = ancestry.steps() * ancestry.rows(), most = rows_at_a_time();
  float* const made = frame.take(predict_ ? K * C : 0);
  float* const sums = frame.take(C);
  const float** const seen = frame.take<const float*>(K);
  float* const taps = frame.take(predict_ ? std::min(most, rows) * heads_ * K : 0);
  for_step_rows(ancestry, log, x, C, [&](int64_t step, int64_t row, int64_t number) {
    if (predict_ && number % most == 0)
      predict(std::min(most, rows - number), query + number * Q, taps, space);
    if (predict_)
      add_taps(taps + number % most * heads_ * K, made);
    const int64_t count = Ancestry::seen(step, K - 1);
    ancestry.find(log, step, row, count, seen);
    kernels::weighted_channels(
        {.channels = C,
         .taps = (predict_ ? made : taps_by_channel_.data()) + (K - count) * C,
         .bias = bias()},
        {seen, count},
        sums);
    end_row(sums, x + number * C, y + number * C);
  });
}

int64_t ShortConv::query_channels() const {
  return narrow_ ? narrow_->weight.inputs() : predict_ ? predict_->weight.inputs() : 0;
}

int64_t ShortConv::rows_at_a_time() const {
  return predict_ ? std::max<int64_t>(1, kPredictedAtATime / (heads_ * options_.kernel_size))
                  : kAllSteps;
}

void ShortConv::predict(int64_t rows, const float* query, float* taps, Workspace& space) const {
  Workspace::Frame frame(space);
  if (narrow_) {
    float* const z = frame.take(rows * options_.rank);
    narrow_->run({.rows = rows, .x = query, .y = z});
    query = z;
  }
  predict_->run({.rows = rows, .x = query, .y = taps});
}

void ShortConv::add_taps(const float* predicted, float* taps) const {
  const int64_t K = options_.kernel_size, R = options_.head_channels;
  for (int64_t j = 0; j < K; ++j) {
    const float* const own = taps_by_channel_.data() + j * channels_;
    float* const out = taps + j * channels_;
    for (int64_t h = 0; h < heads_; ++h)
      for (int64_t c = h * R; c < (h + 1) * R; ++c)
        out[c] = own[c] + predicted[h * K + j];
  }
}

void ShortConv::end_row(const float* sums, const float* x, float* y) const {
  if (options_.activation == kernels::ConvActivation::kSilu)
    silu(channels_, sums, y);
  else
    std::copy_n(sums, channels_, y);
  if (options_.residual)
    add_residual(channels_, x, y, y);
}

std::unique_ptr<const ShortConv> find_short_conv(
    const LayerShortConv& options,
    int64_t channels,
    const Weights& weights,
    const std::string& name) {
  if (!weights.contains(name + ".weight"))
    return nullptr;
  return std::make_unique<const ShortConv>(options, channels, weights, name);
}

const float* ShortConvRun::operator()(
    const float* x, const float* query, Workspace::Frame& frame, Workspace& space) const {
  if (conv == nullptr)
    return x;
  float* const y = frame.take(order.rows() * conv->channels());
  conv->run(order, log == nullptr ? nullptr : &**log, x, query, y, space);
  return y;
}

void silu(int64_t count, const float* x, float* y) {
  kernels::sigmoid_row(x, count, y);
  for (int64_t i = 0; i < count; ++i)
    y[i] *= x[i];
}

void add_residual(int64_t count, const float* x, const float* residual, float* y) {
  for (int64_t i = 0; i < count; ++i)
    y[i] = x[i] + residual[i];
}

std::optional<RowLog> start(const ShortConv* conv, Workspace::Frame& kept) {
  if (conv == nullptr)
    return {};
  return conv->start(kept);
}

}  // namespace seqconv::internal::runtime
