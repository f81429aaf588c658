#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/option_names.h"
#include "search/step_decoder.h"
#include "search/terms.h"
#include "seqconv/requests.h"

namespace seqconv::internal {

/// The widest beam.
inline constexpr int64_t kMaxBeam = 1'000'000;

/// The keys of a search, once for the model's own (DecodingOptions) and for those of a
/// request (SearchOptions).
template <class Options, class Visitor>
void visit_search(Options& options, Visitor& v) {
  v("beam", options.beam, "Hypotheses kept a sentence, 1 to 1,000,000; 1 = greedy");
  v("length_penalty",
    options.length_penalty,
    R"(Scores are divided by length^X; larger favours longer output; -50 to 50)");
  v("stepwise_length_penalty",
    options.stepwise_length_penalty,
    "Finished hypotheses stay in the beam and compete by their scores");
  v("n_best", options.n_best, "Hypotheses given out a sentence, 1 to the beam");
  v("max_length_a",
    options.max_length_a,
    "a of a x source length + b, the most tokens without </s>; 0 to 1,000");
  v("max_length_b",
    options.max_length_b,
    R"(b of a x source length + b, the most tokens without </s>; 0 to 1,000,000)");
  v("min_length", options.min_length, "Fewest tokens, </s> not counted; 0 to 1,000,000");
  v("no_repeat_ngram",
    options.no_repeat_ngram,
    "No n-gram of this size twice, at most 1,000,000; 0 = off");
  v("unknown_penalty",
    options.unknown_penalty,
    "Subtracted from the log-probability of <unk>; -1e30 to 1e30");
}

/// The search of a model, all of it (semantics.md 4): [decoding]. Beam 1 is greedy.
struct DecodingOptions {
  int64_t beam = 5;
  double length_penalty = 1.0;
  bool stepwise_length_penalty = false;
  int64_t n_best = 1;
  double max_length_a = 0;
  int64_t max_length_b = 200;
  int64_t min_length = 1;
  int64_t no_repeat_ngram = 0;
  double unknown_penalty = 0;

  template <class Visitor>
  void visit(Visitor& v) {
    visit_search(*this, v);
  }

  /// UsageError when values make no sense, alone or together; messages have
  /// these names.
  void validate(const OptionNames& names) const;

  /// The same of each value alone, and of n_best within the beam.
  void check_values(const OptionNames& names) const;

  bool operator==(const DecodingOptions&) const = default;
};

/// The search of a request: `model` with what `given` says. A list of n best that the
/// request does not ask for is no longer than its beam.
DecodingOptions resolve_search(const SearchOptions& given, DecodingOptions model);

/// One finished hypothesis.
struct Hypothesis {
  std::vector<int32_t> tokens;      ///< with the final </s>
  std::vector<float> token_scores;  ///< log-probability of each token
  double log_probability = 0;       ///< their sum
  double score = 0;                 ///< log_probability / length^penalty
};

/// Holds what search must know of one sentence.
struct SearchInput {
  int64_t source_length = 0;    ///< ids, </s> counted
  std::vector<int32_t> prefix;  ///< target ids to start with (may be empty)
  /// Runs of target ids that the translation must hold (search/terms.h says how many may be).
  std::vector<std::vector<int32_t>> terms{};
  const WordEdges* edges = nullptr;  ///< of the vocabulary, for terms; null: tokens are words
};

/// Most tokens before </s>: min(int(a * source_length + b), max_steps - 1).
/// With
/// </s> a hypothesis has one more, so a decoder makes at most max_steps steps.
int64_t maximum_length(const DecodingOptions& options, int64_t source_length, int64_t max_steps);

/// Is told the n best hypotheses of a sentence, best first, as soon as they are
/// there: others of its batch may be searched for still. Its exceptions end the
/// search.
using FoundHypotheses = std::function<void(size_t sentence, std::vector<Hypothesis> best)>;

/// Is told the tokens that all hypotheses of a sentence begin with that may still become its
/// best, whenever there are more of them than before.
using SharedTokens = std::function<void(size_t sentence, const std::vector<int32_t>& tokens)>;

/// Beam search over a step decoder (semantics.md 4). Returns for each sentence
/// its n best hypotheses, best first. The result for a sentence does not depend
/// on the others in the batch. `excluded`: tokens that never come, ascending;
/// what is left is not renormalised. A prefix beyond maximum_length is cut
/// there.
///
/// Sentences with terms are searched for with more hypotheses (Post and Vilar 2018, "Fast Lexically
/// Constrained Decoding with Dynamic Beam Allocation"): one more a token of theirs. Hypotheses
/// that hold equally many of these tokens compete, and the best of each such bank come first, the
/// second ones then, and so on; </s> comes when all terms are met. If the maximum length comes
/// before that, those that hold most of them are the result. They heed no stepwise penalty.
std::vector<std::vector<Hypothesis>> search(
    StepDecoder& decoder,
    const std::vector<SearchInput>& inputs,
    const DecodingOptions& options,
    std::span<const int32_t> excluded = {});
/// Searches likewise, sentence by sentence as each ends; `shared` may be empty, which costs
/// nothing.
void search(
    StepDecoder& decoder,
    const std::vector<SearchInput>& inputs,
    const DecodingOptions& options,
    std::span<const int32_t> excluded,
    const FoundHypotheses& found,
    const SharedTokens& shared = {});

}  // namespace seqconv::internal

namespace seqconv {

/// The keys of a request's own search: base/options.h.
template <class Visitor>
void visit_options(SearchOptions& options, Visitor& v) {
  internal::visit_search(options, v);
}

}  // namespace seqconv
