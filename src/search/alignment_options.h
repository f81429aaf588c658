#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace seqconv::internal {

/// Says which of a decoder's looks at the source make alignments: "alignment" of a model
/// folder.
struct AlignmentOptions {
  int64_t layer = -1;            ///< from 0; -1: the last but one, or the only one
  std::vector<int64_t> heads{};  ///< whose mean is taken; none: all
  /// A token's look is that of the step which reads it (Chen et al. 2020), not of the one
  /// which makes it.
  bool next_step = false;

  template <class Visitor>
  void visit(Visitor& v) {
    v("layer", layer, "Layer of the decoder, from 0");
    v("heads", heads, "Heads whose mean is taken, from 0");
    v("next_step", next_step, "A token's look is that of the step that reads it");
  }

  /// Fills in layer and heads of a decoder of so many; UsageError for those that it
  /// has not.
  AlignmentOptions resolve(int64_t layers, int64_t all_heads) const;

  /// The head that guided alignment teaches, in a decoder of so many layers: the first of the
  /// default's layer, as the step sees it that reads a token.
  static AlignmentOptions guided(int64_t layers);

  bool operator==(const AlignmentOptions&) const = default;
};

}  // namespace seqconv::internal
