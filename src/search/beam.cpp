#include "search/beam.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "base/error.h"
#include "search/candidates.h"

namespace seqconv::internal::decode {
namespace {

bool comes_before(const Extension& a, const Extension& b) {
  if (a.log_probability != b.log_probability)
    return a.log_probability > b.log_probability;
  if (a.row != b.row)
    return a.row < b.row;
  return a.token < b.token;
}

/// The best of each bank, most tokens of terms first, then the second ones, up to `count`.
std::vector<Extension> best_of_banks(
    const Terms& terms, std::vector<Extension> extensions, size_t count) {
  struct Place {
    size_t rank;  ///< in its bank
    int64_t bank;
    size_t extension;
  };
  std::ranges::sort(extensions, comes_before);
  std::vector<size_t> sizes(static_cast<size_t>(terms.tokens()) + 1);
  std::vector<Place> places;
  for (size_t i = 0; i < extensions.size(); ++i) {
    const int64_t bank = terms.tokens_in(extensions[i].terms);
    places.push_back({sizes[static_cast<size_t>(bank)]++, bank, i});
  }
  std::ranges::sort(places, [](const Place& a, const Place& b) {
    return a.rank != b.rank ? a.rank < b.rank : a.bank > b.bank;
  });
  std::vector<Extension> best;
  for (const Place& place : std::span(places).first(std::min(count, places.size())))
    best.push_back(extensions[place.extension]);
  return best;
}

/// The score that hypotheses of different lengths are compared by.
double length_score(double log_probability, double length, double penalty) {
  return log_probability / std::pow(length, penalty);
}

/// The hypothesis `live` closed by </s>, whose log-probability is `end_score`.
Hypothesis close_hypothesis(
    const Beam& beam, const LiveHypothesis& live, float end_score, double length_penalty) {
  Hypothesis hypothesis;
  hypothesis.tokens.push_back(kEndId);
  hypothesis.token_scores.push_back(end_score);
  for (int32_t n = live.node; n >= 0;) {
    const BeamNode& node = beam.nodes[static_cast<size_t>(n)];
    hypothesis.tokens.push_back(node.token);
    hypothesis.token_scores.push_back(node.score);
    n = node.parent;
  }
  std::reverse(hypothesis.tokens.begin(), hypothesis.tokens.end());
  std::reverse(hypothesis.token_scores.begin(), hypothesis.token_scores.end());
  hypothesis.log_probability = live.log_probability + end_score;
  hypothesis.score = length_score(
      hypothesis.log_probability, static_cast<double>(hypothesis.tokens.size()), length_penalty);
  return hypothesis;
}

/// Adds the hypothesis that ends by this </s>.
void add_finished(Beam& beam, const Extension& extension, const DecodingOptions& options) {
  beam.finished.push_back(close_hypothesis(
      beam,
      beam.live[static_cast<size_t>(extension.row)],
      extension.score,
      options.length_penalty));
}

}  // namespace

std::vector<Extension> expand(
    const Beam& beam,
    std::span<const std::vector<Candidate>> rows,
    int64_t vocabulary_size,
    int64_t count) {
  SEQCONV_CHECK(
      rows.size() == beam.live.size(),
      "candidates must come for ",
      beam.live.size(),
      " rows, but the decoder gave ",
      rows.size());
  std::vector<Extension> extensions;
  const Terms& terms = beam.limits.terms;
  std::vector<int32_t> asked;
  for (size_t row = 0; row < rows.size(); ++row) {
    const LiveHypothesis& live = beam.live[row];
    asked.clear();
    terms.ask(live.terms, asked);
    for (size_t rank = 0; rank < rows[row].size(); ++rank) {
      const Candidate& candidate = rows[row][rank];
      SEQCONV_CHECK(
          candidate.token >= 0 && candidate.token < vocabulary_size,
          "a candidate must be below the vocabulary size ",
          vocabulary_size,
          ", but the decoder gave ",
          candidate.token);
      // More than `count` are there for the sake of other sentences, or asked for.
      const bool counts = rank < static_cast<size_t>(count) ||
          std::ranges::find(asked, candidate.token) != asked.end();
      if (!std::isfinite(candidate.score) || !counts)
        continue;
      extensions.push_back(
          {static_cast<int32_t>(row),
           candidate.token,
           candidate.score,
           live.log_probability + candidate.score,
           terms.empty() ? TermProgress() : terms.follow(live.terms, candidate.token)});
    }
  }
  if (!terms.empty())
    return best_of_banks(terms, std::move(extensions), static_cast<size_t>(count));
  const size_t kept = std::min(extensions.size(), static_cast<size_t>(count));
  const auto end = extensions.begin() + static_cast<std::ptrdiff_t>(kept);
  std::partial_sort(extensions.begin(), end, extensions.end(), comes_before);
  extensions.resize(kept);
  return extensions;
}

size_t within_beam(
    const Beam& beam,
    std::span<const Extension> extensions,
    int64_t length,
    const DecodingOptions& options) {
  std::vector<double> finished;
  for (const Hypothesis& hypothesis : beam.finished)
    finished.push_back(hypothesis.score);
  std::stable_sort(finished.begin(), finished.end(), std::greater<>());
  // Extensions are of one length: their order by score is the one they have.
  size_t ahead = 0;
  for (size_t rank = 0; rank < extensions.size(); ++rank) {
    const double score = length_score(
        extensions[rank].log_probability, static_cast<double>(length), options.length_penalty);
    while (ahead < finished.size() && finished[ahead] >= score)
      ++ahead;
    if (rank + ahead >= static_cast<size_t>(options.beam))
      return rank;
  }
  return extensions.size();
}

void finish(Beam& beam, std::span<const Extension> extensions, const DecodingOptions& options) {
  const Terms& terms = beam.limits.terms;
  const auto most = static_cast<size_t>(options.beam);
  const auto width = static_cast<size_t>(beam.width(options));
  const bool stepwise = beam.is_stepwise(options);
  for (const Extension& extension : extensions.first(std::min(extensions.size(), width))) {
    const bool full = !stepwise && beam.finished.size() >= most;
    if (extension.token != kEndId || full || !terms.are_met(extension.terms))
      continue;
    add_finished(beam, extension, options);
  }
}

void finish_short(
    Beam& beam, std::span<const Extension> extensions, const DecodingOptions& options) {
  const Terms& terms = beam.limits.terms;
  for (const Extension& extension : extensions) {
    const bool full = static_cast<int64_t>(beam.finished.size()) >= options.beam;
    if (extension.token != kEndId || full ||
        terms.tokens_in(extension.terms) != terms.tokens_in(extensions.front().terms))
      continue;
    add_finished(beam, extension, options);
  }
}

void give_up(Beam& beam, const DecodingOptions& options) {
  beam.finished.push_back(close_hypothesis(
      beam, beam.live.front(), -std::numeric_limits<float>::infinity(), options.length_penalty));
}

void prune(Beam& beam, std::span<const Extension> extensions, int64_t width) {
  std::vector<LiveHypothesis> survivors;
  for (const Extension& extension : extensions) {
    if (static_cast<int64_t>(survivors.size()) == width)
      break;
    if (extension.token == kEndId)
      continue;
    const int32_t node = static_cast<int32_t>(beam.nodes.size());
    const LiveHypothesis& parent = beam.live[static_cast<size_t>(extension.row)];
    beam.nodes.push_back({parent.node, extension.token, extension.score});
    beam.ngrams.add(parent.node, extension.token);
    survivors.push_back({node, extension.row, extension.log_probability, extension.terms});
  }
  beam.live = std::move(survivors);
}

void advance(
    Beam& beam,
    int64_t step,
    std::span<const std::vector<Candidate>> rows,
    int64_t vocabulary_size,
    const DecodingOptions& options) {
  const int64_t width = beam.width(options);
  std::vector<Extension> extensions = expand(beam, rows, vocabulary_size, 2 * width);
  const bool stepwise = beam.is_stepwise(options);
  if (stepwise)
    extensions.resize(within_beam(beam, extensions, step + 1, options));
  finish(beam, extensions, options);
  const bool last = step >= beam.limits.max_length || extensions.empty();
  if (last && beam.finished.empty() && !beam.limits.terms.empty())
    finish_short(beam, extensions, options);
  if (last && beam.finished.empty())
    give_up(beam, options);
  const bool full = !stepwise && static_cast<int64_t>(beam.finished.size()) >= options.beam;
  if (last || full)
    beam.live.clear();
  else
    prune(beam, extensions, width);
}

std::vector<int32_t> shared_tokens(const Beam& beam) {
  // All live hypotheses are equally long: they meet where their nodes do.
  std::vector<int32_t> nodes;
  for (const LiveHypothesis& live : beam.live)
    nodes.push_back(live.node);
  while (std::ranges::adjacent_find(nodes, std::not_equal_to<>()) != nodes.end())
    for (int32_t& node : nodes)
      node = beam.nodes[static_cast<size_t>(node)].parent;
  std::vector<int32_t> tokens;
  for (int32_t node = nodes.front(); node >= 0;) {
    tokens.push_back(beam.nodes[static_cast<size_t>(node)].token);
    node = beam.nodes[static_cast<size_t>(node)].parent;
  }
  std::ranges::reverse(tokens);
  const auto best = std::ranges::max_element(beam.finished, {}, &Hypothesis::score);
  if (best == beam.finished.end())
    return tokens;
  const auto other = std::ranges::mismatch(tokens, best->tokens).in1;
  tokens.erase(other, tokens.end());
  return tokens;
}

std::vector<Hypothesis> best_finished(Beam&& beam, int64_t n_best) {
  std::vector<Hypothesis> best = std::move(beam.finished);
  std::stable_sort(best.begin(), best.end(), [](const Hypothesis& a, const Hypothesis& b) {
    return a.score > b.score;
  });
  if (static_cast<int64_t>(best.size()) > n_best)
    best.resize(static_cast<size_t>(n_best));
  return best;
}

}  // namespace seqconv::internal::decode
