#pragma once

#include "mixer.h"

namespace seqconv::runtime {

/// Keys and values of sources as one layer sees them, once a sentence.
struct SourceMemory {
  std::vector<float> rows;           ///< [source rows, 2C]: keys, values
  std::vector<const float*> keys;    ///< of each source row
  std::vector<const float*> values;  ///< of each source row
};

/// The look at the source (semantics.md 2.1).
class CrossAttention {
 public:
  CrossAttention(
      int64_t heads,
      int64_t dim,
      const Weights& weights,
      const std::string& name);

  /// states [source rows, C].
  SourceMemory memory(const Sequences& sources, const float* states) const;

  /// Rows of C channels; row r looks at source sentence_of_row[r].
  void run(
      const Sequences& sources,
      const SourceMemory& memory,
      std::span<const int32_t> sentence_of_row,
      const LayerRows& rows,
      Workspace& space) const;

 private:
  int64_t heads_;
  int64_t dim_;
  Linear query_;
  Linear key_value_;
  Linear out_;
};

}  // namespace seqconv::runtime
