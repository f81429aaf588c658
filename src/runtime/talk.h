#pragma once

#include <cmath>

#include "kernels/decoding.h"
#include "kernels/talk.h"
#include "runtime/taps.h"

namespace seqconv::internal::runtime {

/// TaLK convolution (Lioutas & Guo 2020).
class Talk : public Convolution {
 public:
  Talk(const MixerOptions& options, const Weights& weights, const std::string& name)
      : options_(options), offsets_(weights.linear(name + "conv.offsets")) {}

  void forward(
      const Sequences& sequences,
      const float* h,
      const float* /*query*/,
      float* y,
      Workspace& space) const override {
    Workspace::Frame frame(space);
    const int64_t H = options_.heads;
    const int64_t count = sequences.rows() * H;
    const float* const offsets = predicted(sequences.rows(), h, frame);
    const float* left = offsets;
    float* right = nullptr;
    if (!options_.causal) {  // [rows, 2H] -> twice [rows, H]
      float* const halves = frame.take(2 * count);
      left = halves;
      right = halves + count;
      for (int64_t r = 0; r < sequences.rows(); ++r) {
        std::copy_n(offsets + r * 2 * H, H, halves + r * H);
        std::copy_n(offsets + r * 2 * H + H, H, right + r * H);
      }
    }
    const kernels::Execution run{.parallel_for = threads()};
    for (int64_t i = 0; i < sequences.count(); ++i) {
      const int64_t first = sequences.first(i);
      kernels::talk_forward<float, float>(
          {.shape = shape(sequences.length(i)),
           .x = h + first * options_.conv_dim,
           .offset_left = left + first * H,
           .offset_right = right == nullptr ? nullptr : right + first * H,
           .y = y + first * options_.conv_dim},
          run);
    }
  }

  PositionWeights probe(
      int64_t steps, const float* h, const float* /*query*/, Workspace& space) const override {
    Workspace::Frame frame(space);
    const int64_t H = options_.heads, sides = options_.causal ? 1 : 2;
    const float* const offsets = predicted(steps, h, frame);
    const auto most = static_cast<float>(options_.max_offset);
    PositionWeights found{WeightForm::kReach, H, 2};
    for (int64_t t = 0; t < steps; ++t)
      for (int64_t head = 0; head < H; ++head) {
        const float* const own = offsets + t * sides * H + head;
        found.values.push_back(std::min(own[0] * most, static_cast<float>(t)));
        found.values.push_back(
            options_.causal ? 0.0F : std::min(own[H] * most, static_cast<float>(steps - 1 - t)));
      }
    return found;
  }

  int64_t reach() const override { return options_.max_offset; }

  void step(
      const Ancestry& ancestry,
      RowLog& log,
      const float* h,
      const float* /*query*/,
      float* y,
      Workspace& space) const override {
    Workspace::Frame frame(space);
    const int64_t H = options_.heads, D = options_.conv_dim;
    const int64_t window = options_.max_offset + 1;
    const float* const offsets = predicted(ancestry.steps() * ancestry.rows(), h, frame);
    const float** const rows = frame.take<const float*>(window);
    float* const taps = frame.take(H * window);
    const bool narrow = kernels::has_talk_row(D / H);
    const auto run = [&](int64_t step, int64_t row, int64_t number) {
      const int64_t count = Ancestry::seen(step, options_.max_offset);
      if (narrow) {
        ancestry.find(log, step, row, count, rows);
        kernels::talk_row(
            {.shape = shape(1),
             .rows = rows,
             .count = count,
             .offset_left = offsets + number * H,
             .y = y + number * D});
        return;
      }
      for (int64_t head = 0; head < H; ++head)
        weigh_window(offsets[number * H + head], count, taps + head * window);
      ancestry.find(log, step, row, count, rows);
      kernels::weighted_rows(
          {.heads = H, .channels = D, .taps = taps, .tap_stride = window},
          {rows, count},
          y + number * D);
    };
    for_step_rows(ancestry, log, h, D, run);
  }

 private:
  kernels::TalkShape shape(int64_t steps) const {
    return {
        .batch = 1,
        .steps = steps,
        .channels = options_.conv_dim,
        .heads = options_.heads,
        .max_left = options_.max_offset,
        .max_right = options_.causal ? 0 : options_.max_offset};
  }

  /// sigmoid(offset logits), [rows, H] or [rows, 2H].
  float* predicted(int64_t rows, const float* h, Workspace::Frame& frame) const {
    const int64_t outputs = offsets_.weight.outputs();
    float* const offsets = frame.take(rows * outputs);
    offsets_.run({.rows = rows, .x = h, .y = offsets});
    kernels::sigmoid_row(offsets, rows * outputs, offsets);
    return offsets;
  }

  /// The weights of the last `count` inputs: all that the window covers, and a
  /// part of one more (Lioutas & Guo 2020, equation 6).
  void weigh_window(float offset, int64_t count, float* taps) const {
    if (std::isnan(offset)) {
      std::fill_n(taps, count, offset);
      return;
    }
    const float share = 1.0F / static_cast<float>(options_.max_offset + 1);
    const double distance = std::min(
        static_cast<double>(offset * static_cast<float>(options_.max_offset)),
        static_cast<double>(count - 1));
    const auto whole = static_cast<int64_t>(distance);
    std::fill_n(taps, count, 0.0F);
    std::fill_n(taps + count - 1 - whole, whole + 1, share);
    if (whole + 1 < count)
      taps[count - 2 - whole] = static_cast<float>(distance - static_cast<double>(whole)) * share;
  }

  MixerOptions options_;
  Linear offsets_;
};

}  // namespace seqconv::internal::runtime
