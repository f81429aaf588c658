#pragma once

#include <span>
#include <vector>

#include "runtime/output.h"

/// Words that each sentence of a batch may have, where it may not have all.
namespace seqconv::internal::runtime {

/// The lists of a batch. Sentences are taken a few together: weights of all
/// their words are multiplied with all their rows at once, and a row then takes
/// its own sentence's numbers. How they are put together changes no number.
class WordLists {
 public:
  /// lists: one a sentence, ascending ids below `vocabulary`, each once, </s>
  /// among them; else Error.
  WordLists(std::vector<std::vector<int32_t>> lists, int64_t vocabulary);

  std::span<const int32_t> words(int32_t sentence) const {
    return lists_[static_cast<size_t>(sentence)];
  }

 private:
  friend class ListedOutput;

  static size_t group_of(int32_t sentence) { return static_cast<size_t>(sentence) / kTogether; }

  static constexpr size_t kTogether = 8;

  std::vector<std::vector<int32_t>> lists_;
  std::vector<std::vector<int32_t>> places_;  // of words in those of the group
  std::vector<std::vector<int32_t>> groups_;  // their words, ascending
};

/// A model's output for these lists.
class ListedOutput {
 public:
  /// Gathers the weights in `kept`, which must outlive it, as `lists` must.
  ListedOutput(const Output& output, const WordLists& lists, Workspace::Frame& kept);

  /// hidden [rows, C] -> logits of the words of each row's sentence, row after
  /// row.
  void logits(
      std::span<const int32_t> sentence_of_row,
      const float* hidden,
      float* out,
      Workspace& space) const;

 private:
  const WordLists* lists_;
  std::vector<WordLogits> groups_;
};

}  // namespace seqconv::internal::runtime
