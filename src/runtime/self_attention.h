#pragma once

#include <algorithm>

#include "kernels/decoding.h"
#include "pipeline/stop_scope.h"
#include "runtime/layer_probe.h"
#include "runtime/mixer.h"

namespace seqconv::internal::runtime {

/// Multi-head self-attention, of a window or of all positions.
class SelfAttentionMixer : public Mixer {
 public:
  SelfAttentionMixer(const MixerOptions& options, const Weights& weights, const std::string& name)
      : options_(options),
        in_(weights.linear(name + "attention.in_proj")),
        out_(weights.linear(name + "attention.out_proj")),
        in_conv_(find_short_conv(
            options.short_conv, 3 * options.dim, weights, name + "attention.in_conv")),
        out_conv_(find_short_conv(
            options.short_conv, options.dim, weights, name + "attention.out_conv")) {}

  void forward(const Sequences& sequences, const LayerRows& rows, Workspace& space) const override {
    Workspace::Frame frame(space);
    const int64_t count = sequences.rows(), C = options_.dim;
    const RowOrder order{.sequences = &sequences};
    float* const y = frame.take(count * C);
    const float* const qkv = projected({in_conv_.get(), order}, rows.x, frame, space);
    Places places(count, frame);
    for (int64_t r = 0; r < count; ++r) {
      places.keys[r] = qkv + r * 3 * C + C;
      places.values[r] = qkv + r * 3 * C + 2 * C;
    }
    float* const scores = frame.take(options_.heads * longest(sequences));
    for (int64_t i = 0; i < sequences.count(); ++i) {
      const int64_t first = sequences.first(i), end = sequences.first(i + 1);
      for (int64_t r = first; r < end; ++r) {
        if ((r - first) % kRowsBetweenQuestions == 0)
          StopScope::check();
        const auto [from, to] = visible(r, first, end);
        kernels::attend(
            {.heads = options_.heads,
             .channels = C,
             .query = qkv + r * 3 * C,
             .keys = places.keys + from,
             .values = places.values + from,
             .count = to - from,
             .scores = scores},
            y + r * C);
      }
    }
    finish({out_conv_.get(), order}, y, rows, space);
  }

  PositionWeights probe(int64_t steps, const float* x, Workspace& space) const override {
    Workspace::Frame frame(space);
    const int64_t C = options_.dim, H = options_.heads, R = C / H;
    Sequences one;
    one.add(steps);
    const float* const qkv = projected({in_conv_.get(), {.sequences = &one}}, x, frame, space);
    PositionWeights found{WeightForm::kPositions, H, steps};
    found.values.resize(static_cast<size_t>(steps * H * steps));
    for (int64_t t = 0; t < steps; ++t)
      for (int64_t h = 0; h < H; ++h) {
        const auto [from, to] = visible(t, 0, steps);
        const float* const query = qkv + t * 3 * C + h * R;
        probe_attention(
            R,
            query,
            std::span(found.values)
                .subspan(
                    static_cast<size_t>((t * H + h) * steps + from),
                    static_cast<size_t>(to - from)),
            [&, first = from](int64_t s, int64_t c) {
              return qkv[(first + s) * 3 * C + C + h * R + c];
            });
      }
    return found;
  }

  int64_t reach() const override {
    return options_.kernel_size > 0 ? options_.kernel_size - 1 : kAllSteps;
  }
  std::unique_ptr<MixerSteps> start(Workspace::Frame& kept) const override;

 private:
  class Steps;

  /// Each row of a very long sequence takes long.
  static constexpr int64_t kRowsBetweenQuestions = 16;

  /// Says where keys and values of `count` rows lie.
  struct Places {
    Places(int64_t count, Workspace::Frame& frame)
        : keys(frame.take<const float*>(count)), values(frame.take<const float*>(count)) {}
    const float** keys;
    const float** values;
  };

  static int64_t longest(const Sequences& sequences) {
    int64_t steps = 0;
    for (int64_t i = 0; i < sequences.count(); ++i)
      steps = std::max(steps, sequences.length(i));
    return steps;
  }

  /// The rows [from, to) that row r of a sequence [first, end) sees.
  std::pair<int64_t, int64_t> visible(int64_t r, int64_t first, int64_t end) const {
    const int64_t K = options_.kernel_size;
    if (K == 0)
      return {first, options_.causal ? r + 1 : end};
    const int64_t left = options_.padding_left();
    return {std::max(first, r - left), std::min(end, r + K - left)};
  }

  /// Queries, keys and values [rows, 3C].
  const float* projected(
      const ShortConvRun& conv, const float* x, Workspace::Frame& frame, Workspace& space) const {
    const int64_t rows = conv.order.rows();
    float* const qkv = frame.take(rows * 3 * options_.dim);
    in_.run({.rows = rows, .x = x, .y = qkv});
    return conv(qkv, x, frame, space);
  }

  void finish(
      const ShortConvRun& conv, const float* y, const LayerRows& rows, Workspace& space) const {
    const int64_t count = conv.order.rows();
    if (conv.conv == nullptr)
      return out_.run({.rows = count, .x = y, .residual = rows.residual, .y = rows.y});
    Workspace::Frame frame(space);
    float* const out = frame.take(count * options_.dim);
    out_.run({.rows = count, .x = y, .y = out});
    add_residual(count * options_.dim, conv(out, y, frame, space), rows.residual, rows.y);
  }

  MixerOptions options_;
  Linear in_;
  Linear out_;
  std::unique_ptr<const ShortConv> in_conv_;
  std::unique_ptr<const ShortConv> out_conv_;
};

class SelfAttentionMixer::Steps : public MixerSteps {
 public:
  Steps(const SelfAttentionMixer& mixer, Workspace::Frame& kept)
      : mixer_(mixer),
        log_(2 * mixer.options_.dim, mixer.reach(), kept),
        in_log_(runtime::start(mixer.in_conv_.get(), kept)),
        out_log_(runtime::start(mixer.out_conv_.get(), kept)) {}

  void run(const Ancestry& ancestry, const LayerRows& rows, Workspace& space) override {
    Workspace::Frame frame(space);
    const int64_t C = mixer_.options_.dim, H = mixer_.options_.heads;
    const int64_t N = ancestry.rows(), count = ancestry.steps() * N;
    const int64_t last = ancestry.first() + ancestry.steps() - 1;
    const int64_t most = Ancestry::seen(last, mixer_.reach());
    const RowOrder order{.ancestry = &ancestry};
    float* const y = frame.take(count * C);
    const float* const qkv =
        mixer_.projected({mixer_.in_conv_.get(), order, &in_log_}, rows.x, frame, space);
    const Places places(most, frame);
    float* const scores = frame.take(H * most);
    for (int64_t t = 0; t < ancestry.steps(); ++t) {
      const int64_t step = ancestry.first() + t;
      float* const kept = log_.add(step, N);
      for (int64_t r = 0; r < N; ++r)
        std::copy_n(qkv + (t * N + r) * 3 * C + C, 2 * C, kept + r * 2 * C);
      const int64_t seen = Ancestry::seen(step, mixer_.reach());
      for (int64_t r = 0; r < N; ++r) {
        ancestry.find(log_, step, r, seen, places.keys);
        for (int64_t i = 0; i < seen; ++i)
          places.values[i] = places.keys[i] + C;
        kernels::attend(
            {.heads = H,
             .channels = C,
             .query = qkv + (t * N + r) * 3 * C,
             .keys = places.keys,
             .values = places.values,
             .count = seen,
             .scores = scores},
            y + (t * N + r) * C);
      }
    }
    mixer_.finish({mixer_.out_conv_.get(), order, &out_log_}, y, rows, space);
  }

 private:
  const SelfAttentionMixer& mixer_;
  RowLog log_;  // keys, values
  std::optional<RowLog> in_log_;
  std::optional<RowLog> out_log_;
};

inline std::unique_ptr<MixerSteps> SelfAttentionMixer::start(Workspace::Frame& kept) const {
  return std::make_unique<Steps>(*this, kept);
}

}  // namespace seqconv::internal::runtime
