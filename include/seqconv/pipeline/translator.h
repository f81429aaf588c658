#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "seqconv/decode/search.h"
#include "seqconv/pipeline/model_folder.h"

namespace seqconv {

/// One translation of one line.
struct Translation {
  std::string text;
  std::string tokens;          ///< the symbols, joined by blanks
  double score = 0;            ///< log-probability / length^penalty
  double log_probability = 0;  ///< natural
  std::vector<float> token_scores;
};

struct TranslatorOptions {
  SearchOptions search;
  int64_t batch_tokens = 4096;  ///< source tokens of a batch, padding counted
  int64_t buffer_lines = 1024;  ///< lines read before sorting by length
};

/// A line to translate and, optionally, how its translation must begin.
struct TranslationRequest {
  std::string line{};
  std::string target_prefix{};
  /// The sentence as ids without </s>, where given: `line` is not read then.
  std::optional<std::vector<int32_t>> ids{};
};

/// Raw lines to translations, in input order: text -> batches sorted by length
/// -> search -> text. An empty line gives one empty translation. A line longer
/// than the model's learned positions is cut, with a warning that says so.
class Translator {
 public:
  /// One model, or several for an ensemble (equal target vocabularies; each
  /// must turn the lines into the same ids).
  Translator(std::vector<LoadedModel> models, const TranslatorOptions& options);

  /// The n best translations of each request, best first.
  std::vector<std::vector<Translation>> translate(
      const std::vector<TranslationRequest>& requests) const;

  const TranslatorOptions& options() const { return options_; }

 private:
  std::vector<LoadedModel> models_;
  TranslatorOptions options_;
};

/// Natural-log probability of each target sentence given its source sentence,
/// both as ids without </s>.
std::vector<double> score_pairs(
    const LoadedModel& model,
    const std::vector<std::vector<int32_t>>& sources,
    const std::vector<std::vector<int32_t>>& targets,
    int64_t batch_tokens);

}  // namespace seqconv
