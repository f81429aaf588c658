#pragma once

#include <optional>
#include <span>
#include <vector>

#include "runtime/embedding.h"
#include "runtime/layer.h"
#include "runtime/output.h"

/// Models of the runtime. They change nothing when they run, so that threads
/// share them; what a decoder remembers is a PastSteps of its own.
namespace seqconv::internal::runtime {

/// One side's layers and final norm.
class Stack {
 public:
  Stack(const ModelOptions& options, Task task, Side side, const Weights& weights);

  const std::vector<Layer>& layers() const { return layers_; }
  /// x [rows, C], in place.
  void finish(int64_t rows, float* x) const;

 private:
  std::vector<Layer> layers_;
  std::optional<LayerNorm> final_norm_;
};

/// Sources as a decoder sees them.
struct Sources {
  Sequences sequences;
  std::vector<SourceMemory> memories;  ///< one a layer

  SourceView view(size_t layer, std::span<const int32_t> sentence_of_row) const;
};

/// Holds what a decoder remembers between steps.
struct PastSteps {
  Ancestry ancestry;
  std::vector<LayerSteps> layers;
};

/// Embedding, layers and output of a decoder.
class Decoder {
 public:
  Decoder(
      const ModelOptions& options,
      Task task,
      const VocabularySizes& vocabulary,
      const Weights& weights);

  int64_t dim() const { return dim_; }
  int64_t vocabulary() const { return vocabulary_; }
  int64_t max_tokens() const { return embedding_.max_tokens(); }
  const Output& output() const { return *output_; }

  /// The sources as its layers see them, of encoder states [rows, C].
  /// Their memory of them lies in `kept`.
  Sources look_at(
      Sequences sequences, const float* states, Workspace::Frame& kept, Workspace& space) const;

  /// Its memory is taken from `kept`, which outlives it.
  PastSteps start(Workspace::Frame& kept) const;
  /// The next steps: ids [T', N] -> hidden [T', N, C]. Row r of the first
  /// continues old row parents[r] and looks at source sentence_of_row[r];
  /// sources: null in a language model. One step at a time if there are any.
  void step(
      std::span<const int32_t> parents,
      std::span<const int32_t> ids,
      const Sources* sources,
      std::span<const int32_t> sentence_of_row,
      PastSteps& past,
      float* hidden,
      Workspace& space) const;

  /// Natural log-probabilities of words [rows] -> out, where ids [rows] are
  /// what is read: whole sequences, number i of which has source i.
  void score(
      const Sequences& sequences,
      std::span<const int32_t> ids,
      std::span<const int32_t> words,
      const Sources* sources,
      float* out,
      Workspace& space) const;

  /// Tells what ids [rows] look at, by alignment options that are resolved: whole sequences,
  /// whose source is the only one.
  std::vector<SourceShares> source_shares(
      const Sequences& sequences,
      std::span<const int32_t> ids,
      const Sources& sources,
      const AlignmentOptions& alignment,
      Workspace& space) const;

  /// Tells what the layers look at while one sequence `ids` is read, whose
  /// source is the only one.
  std::vector<LayerProbe> probe(
      std::span<const int32_t> ids, const Sources* sources, Workspace& space) const;

 private:
  /// ids [rows] of whole sequences -> x [rows, C], each layer by run(number,
  /// view). Sequence i has source i, or the only one.
  template <class Run>
  void read(
      const Sequences& sequences,
      std::span<const int32_t> ids,
      const Sources* sources,
      float* x,
      Workspace& space,
      const Run& run) const;

  int64_t dim_;
  int64_t vocabulary_;
  Embedding embedding_;
  Stack stack_;
  std::unique_ptr<Output> output_;
};

/// A model that translates.
class TranslationModel {
 public:
  TranslationModel(const ModelToRun& model, ComputeType compute);

  const Decoder& decoder() const { return decoder_; }
  PositionLimits limits() const { return limits_; }
  const AlignmentOptions& alignment() const { return alignment_; }
  kernels::WeightType weight_type() const { return type_; }
  int64_t weight_bytes() const { return weight_bytes_; }
  /// Reads sources without </s>. What a decoder sees of them lies in `kept`.
  Sources read(
      const std::vector<std::vector<int32_t>>& sources,
      Workspace::Frame& kept,
      Workspace& space) const;
  /// The same of one source; `found` gets what its layers look at.
  Sources probe(
      const std::vector<int32_t>& source,
      std::vector<LayerProbe>& found,
      Workspace::Frame& kept,
      Workspace& space) const;

 private:
  TranslationModel(const ModelToRun& model, const Weights& weights);
  /// The same, each layer by run(number, sequences, x [rows, C]).
  template <class Run>
  Sources read_by(
      const std::vector<std::vector<int32_t>>& sources,
      Workspace::Frame& kept,
      Workspace& space,
      const Run& run) const;

  int64_t dim_;
  PositionLimits limits_;
  AlignmentOptions alignment_;  // resolved
  kernels::WeightType type_;
  Embedding embedding_;
  Stack encoder_;
  Decoder decoder_;
  int64_t weight_bytes_;  // of packed matrices
};

/// Sequences with their ids one after the other.
struct Ids {
  Sequences sequences;
  std::vector<int32_t> ids;

  void add(std::span<const int32_t> more) {
    ids.insert(ids.end(), more.begin(), more.end());
    sequences.add(static_cast<int64_t>(more.size()));
  }
};

}  // namespace seqconv::internal::runtime
