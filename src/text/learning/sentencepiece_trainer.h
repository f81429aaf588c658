#pragma once

#include <string>
#include <vector>

#include "text/preparation.h"
#include "text/text_options.h"

namespace seqconv::internal {

/// Says how train_sentencepiece trains.
struct SentencePieceTraining {
  int64_t size = 8000;  ///< number of pieces, <unk> included
  SentencePieceKind kind = SentencePieceKind::kUnigram;
  double character_coverage = 0.9995;
  bool byte_fallback = false;             ///< characters that are no pieces are bytes
  std::vector<std::string> user_symbols;  ///< pieces that are never split
};

/// Trains a SentencePiece model on the prepared lines of text files (strictly
/// read) and returns the bytes of its file; the same bytes for the same text.
/// Takes every n-th of more than two million lines. Text too poor for `size`
/// pieces gives a smaller model and a warning that names its size. Error when
/// `size` is too small for the characters, or no text is there.
std::string train_sentencepiece(
    const std::vector<TextFile>& files, const SentencePieceTraining& training);

}  // namespace seqconv::internal
