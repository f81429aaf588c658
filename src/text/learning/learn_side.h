#pragma once

#include <vector>

#include "text/bpe_trainer.h"
#include "text/text_side.h"

/// One side of a text, learned from files.
namespace seqconv::internal {

/// Learns the merges or pieces that the options want from the files.
SegmenterPointer learn_segmenter(const TextOptions& options, const std::vector<TextFile>& files);

/// Counts how often each symbol comes in the prepared files, in one streaming
/// pass. Error when there is none; bad text is an Error with file and line.
WordCounts count_symbols(const SegmenterPointer& segmenter, const std::vector<TextFile>& files);

/// Tells whether a counted symbol has no id of its own.
bool lacks_symbols(const Vocabulary& vocabulary, const WordCounts& counts);

/// A segmenter and a vocabulary that fit each other.
struct LearnedSide {
  SegmenterPointer segmenter;
  VocabularyPointer vocabulary;
  WordCounts counts;  ///< of the symbols of the text, as they are split
};

/// Builds the vocabulary of a segmenter's symbols in the files, within the
/// options' limits; of bytes and user-defined symbols it has all.
LearnedSide learn_side(
    const TextOptions& options,
    const SegmenterPointer& segmenter,
    const std::vector<TextFile>& files);

}  // namespace seqconv::internal
