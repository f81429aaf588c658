#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "search/constraints.h"
#include "search/search.h"
#include "search/step_decoder.h"

namespace seqconv::internal::decode {

/// A token of a hypothesis. Nodes form a tree: hypotheses share beginnings.
struct BeamNode {
  int32_t parent = -1;  ///< index of the token before, -1 at the start
  int32_t token = 0;
  float score = 0;  ///< log-probability of this token
};

/// A hypothesis that can still grow: one row of the decoder.
struct LiveHypothesis {
  int32_t node = -1;           ///< its last token, -1 before the first
  int32_t row = 0;             ///< row of this sentence that it continues
  double log_probability = 0;  ///< sum over its tokens
  TermProgress terms{};
};

/// The search of one sentence. It starts with one empty hypothesis, so that
/// the first step, and every step within a forced prefix, has a single row.
struct Beam {
  Limits limits;
  std::vector<BeamNode> nodes;
  RepeatedNgrams ngrams;  ///< of the same numbers as the nodes
  std::vector<LiveHypothesis> live{LiveHypothesis{}};
  std::vector<Hypothesis> finished;

  /// Hypotheses kept: more than the beam where terms must come.
  int64_t width(const DecodingOptions& options) const {
    return options.beam + limits.terms.tokens();
  }
  /// True where finished hypotheses stay in the beam, which banks of terms do not have.
  bool is_stepwise(const DecodingOptions& options) const {
    return options.stepwise_length_penalty && limits.terms.empty();
  }
};

/// A live hypothesis and one token that could follow it.
struct Extension {
  int32_t row = 0;  ///< index into Beam::live
  int32_t token = 0;
  float score = 0;             ///< log-probability of the token
  double log_probability = 0;  ///< of hypothesis and token
  TermProgress terms{};        ///< of both
};

/// The best `count` ways to go on: `rows` holds the candidates of each live
/// hypothesis. Ranked by log-probability, not by length; equal ones by
/// ascending row, then token. What is not finite is left out. Error when
/// `rows` does not fit or a token is outside the vocabulary. With terms the best of each bank
/// come first: of those that hold equally many tokens of terms, most tokens first.
std::vector<Extension> expand(
    const Beam& beam,
    std::span<const std::vector<Candidate>> rows,
    int64_t vocabulary_size,
    int64_t count);

/// Counts those of the first `extensions`, hypotheses of `length` tokens, that
/// are among the `options.beam` best of them and `finished`, all by their
/// scores; of equal scores finished ones come first.
size_t within_beam(
    const Beam& beam,
    std::span<const Extension> extensions,
    int64_t length,
    const DecodingOptions& options);

/// Moves the hypotheses that end here to `finished`: </s> counts only within
/// the first `width` extensions. It takes no more than `options.beam`
/// but with a stepwise penalty, where later ones may be the better ones. With terms it takes only
/// hypotheses that hold them.
void finish(Beam& beam, std::span<const Extension> extensions, const DecodingOptions& options);

/// Ends the best live hypothesis by </s> with log-probability minus infinity:
/// the way out when nothing at all can follow and nothing was finished.
void give_up(Beam& beam, const DecodingOptions& options);

/// Moves hypotheses that the maximum length ends to `finished` where nothing else was: those that
/// hold as many tokens of their terms as the first extension.
void finish_short(
    Beam& beam, std::span<const Extension> extensions, const DecodingOptions& options);

/// Lets the best `width` extensions that do not end become the live hypotheses.
void prune(Beam& beam, std::span<const Extension> extensions, int64_t width);

/// One step of one sentence: expand, finish, prune; with a stepwise penalty
/// only what is within the beam lives on. Afterwards `live` is empty when the
/// sentence is done, and `finished` then holds at least one.
void advance(
    Beam& beam,
    int64_t step,
    std::span<const std::vector<Candidate>> rows,
    int64_t vocabulary_size,
    const DecodingOptions& options);

/// The tokens that all hypotheses begin with of which one will be the best: the live ones and the
/// best finished one. There is a live one.
std::vector<int32_t> shared_tokens(const Beam& beam);

/// The n best finished hypotheses by score, best first, equal ones in the order
/// in which they were finished.
std::vector<Hypothesis> best_finished(Beam&& beam, int64_t n_best);

}  // namespace seqconv::internal::decode
