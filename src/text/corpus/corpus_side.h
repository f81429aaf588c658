#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "text/corpus/line_encoder.h"
#include "text/corpus/pair_pieces.h"
#include "text/text_source.h"

namespace seqconv::internal {

/// The data of one side of a translation model, or those of a language model.
struct CorpusSide {
  /// Text or, by their names, fairseq's binarised data (holds_ids), of which a
  /// sentence is taken as a line of text is.
  std::vector<TextSource> files;
  LineEncoder encode = nullptr;  ///< for lines of text
  /// Encodes lines with pieces in slots; wanted where pairs are read with FindPairPieces.
  std::function<std::vector<int32_t>(const LineInSlots&)> encode_pieces = nullptr;
  int64_t vocabulary = 0;  ///< binarised ids are below it
  /// Looks, where given, at the ids of each binarised sentence; may throw.
  std::function<void(const std::vector<int32_t>&)> check = nullptr;
};

}  // namespace seqconv::internal
