#pragma once

#include <cstdint>

#include "train/options.h"

namespace seqconv::internal {

/// A training text in numbers, before anything is learned from it: settings are chosen by them.
struct CorpusFacts {
  int64_t samples = 0;  ///< pairs, or lines of a language model, with text
  /// Characters and words (between blanks) of all samples; the source's are 0 in language models.
  int64_t source_characters = 0;
  int64_t target_characters = 0;
  int64_t source_words = 0;
  int64_t target_words = 0;
  int64_t alphabet = 0;    ///< characters that make up 99.95 % of the text
  bool is_sorted = false;  ///< by length: each source as long as the one before, or longer
  bool has_ids = false;    ///< binarised data, of which a word is an id, and there are no others

  /// Mean characters of a word.
  double word_length() const;
};

/// Reads the training text once. Errors: those of reading it, and a text without samples.
CorpusFacts measure_corpus(const TrainConfig& config);

}  // namespace seqconv::internal
