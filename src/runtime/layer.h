#pragma once

#include <optional>

#include "runtime/cross_attention.h"
#include "runtime/feed_forward.h"
#include "runtime/mixer.h"

namespace seqconv::internal::runtime {

/// Layer normalisation over rows of C channels.
class LayerNorm {
 public:
  LayerNorm(const Weights& weights, const std::string& name)
      : weight_(weights.numbers(name + ".weight")), bias_(weights.numbers(name + ".bias")) {}

  /// x [rows, C] -> y [rows, C], which may be x.
  void run(int64_t rows, const float* x, float* y) const;

 private:
  std::vector<float> weight_;
  std::vector<float> bias_;
};

/// The sources of a decoder, as one layer sees them, and which row looks at
/// which.
struct SourceView {
  const Sequences* sources = nullptr;
  const SourceMemory* memory = nullptr;
  std::span<const int32_t> sentence_of_row;
};

/// The past of a layer's parts in one decoder.
struct LayerSteps {
  std::unique_ptr<MixerSteps> mixer;
  std::optional<RowLog> block_conv;
  std::optional<RowLog> feed_forward_conv;
  FeedForwardSteps feed_forward;
};

/// Mixer, the look at the source (of translation decoders), feed-forward
/// network; each with residual and norm (semantics.md 2.1).
class Layer {
 public:
  Layer(const LayerOptions& options, const Weights& weights, const std::string& name);

  /// x [rows, C] of whole sequences, in place. view: null without a source.
  void forward(
      const Sequences& sequences, const SourceView* view, float* x, Workspace& space) const;
  /// As forward of one sequence; says what it looked at.
  void probe(
      const Sequences& sequences,
      const SourceView* view,
      LayerProbe& found,
      float* x,
      Workspace& space) const;
  /// Tells what rows x [rows, C] of whole sequences look at with these heads, all at the only
  /// source. x is changed.
  std::vector<SourceShares> source_shares(
      const Sequences& sequences,
      const SourceView& view,
      std::span<const int64_t> heads,
      float* x,
      Workspace& space) const;
  /// x [T', N, C] of the next steps, in place.
  void step(
      const Ancestry& ancestry,
      LayerSteps& past,
      const SourceView* view,
      float* x,
      Workspace& space) const;

  /// The number of steps that it looks back.
  int64_t reach() const;
  /// A past of no inputs; it refers to this layer, and has its memory from `kept`, which
  /// outlives it.
  LayerSteps start(Workspace::Frame& kept) const;

  const CrossAttention& cross_attention() const { return *cross_attention_; }

 private:
  template <class Part>
  void run_part(
      const LayerNorm& norm, int64_t rows, float* x, Workspace& space, const Part& part) const;
  /// x = x + mixer(x) with its norm, where mix(rows) is the mixer; past: of steps.
  template <class Mix>
  void run_mixer(
      const RowOrder& order, LayerSteps* past, float* x, Workspace& space, const Mix& mix) const;
  /// Does what comes behind the mixer; `before` sees what the look at the
  /// source gets.
  template <class Before>
  void finish(
      const RowOrder& order,
      LayerSteps* past,
      const SourceView* view,
      float* x,
      Workspace& space,
      const Before& before) const;

  int64_t dim_;
  int64_t conv_reach_;  // of short convolutions
  NormPlacement placement_;
  std::unique_ptr<Mixer> mixer_;
  LayerNorm mixer_norm_;
  std::optional<CrossAttention> cross_attention_;
  std::optional<LayerNorm> cross_attention_norm_;
  FeedForward feed_forward_;
  LayerNorm feed_forward_norm_;
  std::unique_ptr<const ShortConv> block_conv_;
  std::unique_ptr<const ShortConv> feed_forward_conv_;
};

}  // namespace seqconv::internal::runtime
