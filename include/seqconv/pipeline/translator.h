#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "seqconv/decode/search.h"
#include "seqconv/pipeline/model_folder.h"
#include "seqconv/text/symbol_count.h"

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
  /// What messages call it ("file:line"), where there is something to name.
  std::string where{};
};

/// Raw lines to translations, in input order: text -> batches sorted by length
/// -> search -> text. An empty line gives one empty translation. A line longer
/// than the model's learned positions is cut, and so is a target prefix longer
/// than a translation may be, with a warning that says so.
class Translator {
 public:
  /// One model, or several for an ensemble. Error when their texts turn lines
  /// into other ids, or ids into other lines.
  Translator(std::vector<LoadedModel> models, const TranslatorOptions& options);

  /// The n best translations of each request, best first. Where `count` is
  /// given, the symbols of the source lines are added to it. NoProbability,
  /// naming the request, for one to which a model gives none. Safe to call from
  /// several threads at a time.
  std::vector<std::vector<Translation>> translate(
      const std::vector<TranslationRequest>& requests,
      SymbolCount* count = nullptr) const;

  const TranslatorOptions& options() const { return options_; }
  /// Most tokens of a translation, </s> counted, by the decoder's learned
  /// positions; 0: no limit.
  int64_t target_positions() const { return target_positions_; }

 private:
  struct Sentence {
    size_t request = 0;
    std::vector<int32_t> source;
    SearchInput input;
  };

  std::vector<int32_t> source_ids(const TranslationRequest& request) const;
  SearchInput search_input(
      const TranslationRequest& request,
      int64_t source_length) const;
  void warn_if_cut(
      const TranslationRequest& request,
      const SearchInput& input,
      const Hypothesis& best) const;
  void translate_group(
      const std::vector<TranslationRequest>& requests,
      const std::vector<Sentence>& sentences,
      const std::vector<size_t>& group,
      std::vector<std::vector<Translation>>& results) const;

  std::vector<LoadedModel> models_;
  TranslatorOptions options_;
  int64_t source_positions_;
  int64_t target_positions_;
};

/// Natural-log probability of each target sentence given its source sentence,
/// both as ids without </s>; not a finite number where the model's own are not.
std::vector<double> score_pairs(
    const LoadedModel& model,
    const std::vector<std::vector<int32_t>>& sources,
    const std::vector<std::vector<int32_t>>& targets,
    int64_t batch_tokens);

}  // namespace seqconv
