#include "runtime/mixer.h"

#include "base/error.h"
#include "runtime/average_attention.h"
#include "runtime/cnn.h"
#include "runtime/dynamicconv.h"
#include "runtime/lightconv.h"
#include "runtime/self_attention.h"
#include "runtime/talk.h"

namespace seqconv::internal::runtime {
namespace {

/// linear1, gate, convolution and linear2.
class ConvolutionMixer : public Mixer {
 public:
  ConvolutionMixer(
      const MixerOptions& options,
      const Weights& weights,
      const std::string& name,
      std::unique_ptr<Convolution> convolution)
      : options_(options),
        linear1_(weights.linear(name + "linear1", options.glu)),
        convolution_(std::move(convolution)),
        linear2_(weights.linear(name + "linear2")) {}

  void forward(const Sequences& sequences, const LayerRows& rows, Workspace& space) const override {
    Workspace::Frame frame(space);
    const int64_t count = sequences.rows();
    float* const h = gated(count, rows.x, frame);
    float* const y = frame.take(count * options_.conv_dim);
    convolution_->forward(sequences, h, query(h, rows.x), y, space);
    finish(count, y, rows);
  }

  PositionWeights probe(int64_t steps, const float* x, Workspace& space) const override {
    Workspace::Frame frame(space);
    const float* const h = gated(steps, x, frame);
    return convolution_->probe(steps, h, query(h, x), space);
  }

  int64_t reach() const override { return convolution_->reach(); }
  std::unique_ptr<MixerSteps> start(Workspace::Frame& kept) const override;

 private:
  class Steps;

  /// [rows, D] behind linear1 and the gate.
  float* gated(int64_t rows, const float* x, Workspace::Frame& frame) const {
    float* const h = frame.take(rows * options_.conv_dim);
    linear1_.run(
        {.rows = rows,
         .x = x,
         .end = options_.glu ? kernels::LinearEnd::kGlu : kernels::LinearEnd::kNone,
         .y = h});
    return h;
  }

  const float* query(const float* h, const float* x) const {
    return options_.query == QuerySource::kBlockInput ? x : h;
  }

  void finish(int64_t count, const float* y, const LayerRows& rows) const {
    linear2_.run({.rows = count, .x = y, .residual = rows.residual, .y = rows.y});
  }

  MixerOptions options_;
  Linear linear1_;
  std::unique_ptr<Convolution> convolution_;
  Linear linear2_;
};

class ConvolutionMixer::Steps : public MixerSteps {
 public:
  Steps(const ConvolutionMixer& mixer, Workspace::Frame& kept)
      : mixer_(mixer), log_(mixer.options_.conv_dim, mixer.reach(), kept) {}

  void run(const Ancestry& ancestry, const LayerRows& rows, Workspace& space) override {
    Workspace::Frame frame(space);
    const int64_t count = ancestry.steps() * ancestry.rows();
    float* const h = mixer_.gated(count, rows.x, frame);
    float* const y = frame.take(count * mixer_.options_.conv_dim);
    mixer_.convolution_->step(ancestry, log_, h, mixer_.query(h, rows.x), y, space);
    mixer_.finish(count, y, rows);
  }

 private:
  const ConvolutionMixer& mixer_;
  RowLog log_;
};

std::unique_ptr<MixerSteps> ConvolutionMixer::start(Workspace::Frame& kept) const {
  return std::make_unique<Steps>(*this, kept);
}

/// A convolution with its linear maps.
template <class Operator>
std::unique_ptr<Mixer> surround(
    const MixerOptions& options, const Weights& weights, const std::string& name) {
  return std::make_unique<ConvolutionMixer>(
      options, weights, name, std::make_unique<Operator>(options, weights, name));
}

}  // namespace

std::unique_ptr<Mixer> make_mixer(
    const MixerOptions& options, const Weights& weights, const std::string& name) {
  switch (options.kind) {
    case MixerKind::kLightConv:
      return surround<LightConv>(options, weights, name);
    case MixerKind::kDynamicConv:
      return surround<DynamicConv>(options, weights, name);
    case MixerKind::kTalk:
      return surround<Talk>(options, weights, name);
    case MixerKind::kSelfAttention:
      return std::make_unique<SelfAttentionMixer>(options, weights, name);
    case MixerKind::kAverageAttention:
      return std::make_unique<AverageAttentionMixer>(options, weights, name);
    case MixerKind::kCnn:
      return std::make_unique<CnnMixer>(options, weights, name);
  }
  fail("unknown block kind");
}

}  // namespace seqconv::internal::runtime
