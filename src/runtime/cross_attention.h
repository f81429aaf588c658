#pragma once

#include "kernels/decoding.h"
#include "runtime/mixer.h"
#include "search/backend.h"

namespace seqconv::internal::runtime {

/// Keys and values of sources as one layer sees them, once a sentence.
struct SourceMemory {
  float* keys = nullptr;           ///< of each sentence [C, stride], one after another
  float* values = nullptr;         ///< [source rows, C]
  std::vector<int64_t> first_key;  ///< where those of a sentence begin
};

/// The look at the source (semantics.md 2.1).
class CrossAttention {
 public:
  CrossAttention(int64_t heads, int64_t dim, const Weights& weights, const std::string& name);

  /// states [source rows, C]. What it shows lies in `kept`.
  SourceMemory memory(
      const Sequences& sources,
      const float* states,
      Workspace::Frame& kept,
      Workspace& space) const;

  /// Rows of C channels; row r looks at source sentence_of_row[r].
  void run(
      const Sequences& sources,
      const SourceMemory& memory,
      std::span<const int32_t> sentence_of_row,
      const LayerRows& rows,
      Workspace& space) const;

  /// Tells how one sequence's rows x [steps, C] weigh the only source's
  /// positions.
  PositionWeights probe(
      const Sequences& source, const SourceMemory& memory, int64_t steps, const float* x) const;

  /// Tells it of each sequence of rows x [rows, C], in the mean of some heads.
  std::vector<SourceShares> shares(
      const Sequences& source,
      const SourceMemory& memory,
      const Sequences& sequences,
      std::span<const int64_t> heads,
      const float* x,
      Workspace& space) const;

 private:
  /// Tells how a head's query [R] weighs the only source's positions.
  void weigh(
      const Sequences& source,
      const SourceMemory& memory,
      int64_t head,
      const float* query,
      std::span<float> weights) const;
  kernels::SeenSource source(const Sequences& sources, const SourceMemory& memory, int64_t i) const;

  int64_t heads_;
  int64_t dim_;
  Linear query_;
  Linear key_value_;
  Linear out_;
};

}  // namespace seqconv::internal::runtime
