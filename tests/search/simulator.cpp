#include "search/simulator.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>

namespace seqconv::internal::testing {
namespace {

struct Partial {
  std::vector<int32_t> tokens;  // without the </s> that starts
  std::vector<float> scores;
  double total = 0;
};

Partial extended(const Partial& from, int32_t token, float score) {
  Partial result = from;
  result.tokens.push_back(token);
  result.scores.push_back(score);
  result.total += score;
  return result;
}

std::vector<int32_t> with_start(const std::vector<int32_t>& tokens) {
  std::vector<int32_t> result = {2};
  result.insert(result.end(), tokens.begin(), tokens.end());
  return result;
}

double score_of(double total, size_t length, double penalty) {
  return total / std::pow(static_cast<double>(length), penalty);
}

Hypothesis finished(const Partial& partial, double penalty) {
  Hypothesis h;
  h.tokens = partial.tokens;
  h.token_scores = partial.scores;
  h.log_probability = partial.total;
  h.score = score_of(partial.total, h.tokens.size(), penalty);
  return h;
}

// Would `token` make an n-gram come twice in </s> + tokens + token?
bool repeats(const std::vector<int32_t>& tokens, int32_t token, int64_t n) {
  if (token == 2)  // the end of a sentence repeats nothing
    return false;
  std::vector<int32_t> all = with_start(tokens);
  all.push_back(token);
  const int64_t size = static_cast<int64_t>(all.size());
  if (size < n)
    return false;
  const std::vector<int32_t> last(all.end() - n, all.end());
  std::set<std::vector<int32_t>> earlier;
  for (int64_t i = 0; i + n < size; ++i)
    earlier.insert({all.begin() + i, all.begin() + i + n});
  return earlier.count(last) > 0;
}

struct Rules {
  const DecodingOptions& options;
  const std::vector<int32_t>& excluded;
  std::vector<int32_t> prefix;
  int64_t max_length;

  // The log-probability with which `token` may come, or minus infinity.
  float allowed(const Partial& partial, int32_t token, const std::vector<float>& log_probs) const {
    const float never = -std::numeric_limits<float>::infinity();
    const size_t step = partial.tokens.size();
    const float score = log_probs[static_cast<size_t>(token)];
    if (token < 2 || std::isnan(score))
      return never;
    if (static_cast<int64_t>(step) == max_length)
      return token == 2 ? score : never;
    if (step < prefix.size())
      return token == prefix[step] ? score : never;
    if (std::count(excluded.begin(), excluded.end(), token) > 0)
      return never;
    if (token == 2 && static_cast<int64_t>(step) < options.min_length)
      return never;
    if (options.no_repeat_ngram > 0 && repeats(partial.tokens, token, options.no_repeat_ngram))
      return never;
    return token == 3 ? static_cast<float>(score - options.unknown_penalty) : score;
  }
};

struct Ranked {
  double total;
  size_t row;
  int32_t token;
  float score;
};

std::vector<Ranked> rank_all(
    const std::vector<Partial>& live, const Rules& rules, const NextLogProbs& next) {
  std::vector<Ranked> all;
  for (size_t row = 0; row < live.size(); ++row) {
    const std::vector<float> log_probs = next(with_start(live[row].tokens));
    for (size_t t = 0; t < log_probs.size(); ++t) {
      const int32_t token = static_cast<int32_t>(t);
      const float score = rules.allowed(live[row], token, log_probs);
      if (std::isfinite(score))
        all.push_back({live[row].total + score, row, token, score});
    }
  }
  std::sort(all.begin(), all.end(), [](const Ranked& a, const Ranked& b) {
    return std::make_tuple(-a.total, a.row, a.token) < std::make_tuple(-b.total, b.row, b.token);
  });
  return all;
}

// What is left of `all` when everything, finished or not, stands in one list,
// and that list is sorted by score and cut after `beam` places.
std::vector<Ranked> left_in_one_list(
    const std::vector<Ranked>& all,
    const std::vector<Hypothesis>& done,
    size_t length,
    const DecodingOptions& options) {
  std::vector<std::pair<double, const Ranked*>> list;
  for (const Hypothesis& h : done)
    list.emplace_back(h.score, nullptr);
  for (const Ranked& r : all)
    list.emplace_back(score_of(r.total, length, options.length_penalty), &r);
  std::stable_sort(
      list.begin(), list.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<Ranked> left;
  for (size_t i = 0; i < std::min(list.size(), static_cast<size_t>(options.beam)); ++i)
    if (list[i].second != nullptr)
      left.push_back(*list[i].second);
  return left;
}

void sort_by_score(std::vector<Hypothesis>& hypotheses) {
  std::stable_sort(
      hypotheses.begin(), hypotheses.end(), [](const Hypothesis& a, const Hypothesis& b) {
        return a.score > b.score;
      });
}

}  // namespace

std::vector<Hypothesis> simulate_search(
    const NextLogProbs& next,
    const SearchInput& input,
    const DecodingOptions& options,
    int64_t max_steps,
    const std::vector<int32_t>& excluded) {
  Rules rules{options, excluded, {}, 0};
  for (const int32_t token : input.prefix) {
    rules.prefix.push_back(token);
    if (token == 2)
      break;
  }
  rules.max_length = std::min(
      static_cast<int64_t>(
          options.max_length_a * static_cast<double>(input.source_length) +
          static_cast<double>(options.max_length_b)),
      max_steps - 1);

  const size_t beam = static_cast<size_t>(options.beam);
  std::vector<Hypothesis> done;
  std::vector<Partial> live = {Partial{}};
  const bool stepwise = options.stepwise_length_penalty;
  while (!live.empty() && (stepwise || done.size() < beam)) {
    std::vector<Ranked> all = rank_all(live, rules, next);
    if (stepwise)
      all = left_in_one_list(all, done, live[0].tokens.size() + 1, options);
    else if (all.size() > 2 * beam)
      all.resize(2 * beam);
    std::vector<Partial> survivors;
    for (size_t rank = 0; rank < all.size(); ++rank) {
      const Ranked& r = all[rank];
      const Partial grown = extended(live[r.row], r.token, r.score);
      if (r.token != 2) {
        if (survivors.size() < beam)
          survivors.push_back(grown);
      } else if (stepwise || (rank < beam && done.size() < beam)) {
        done.push_back(finished(grown, options.length_penalty));
      }
    }
    if (all.empty() && done.empty()) {
      const float never = -std::numeric_limits<float>::infinity();
      done.push_back(finished(extended(live[0], 2, never), options.length_penalty));
    }
    live = survivors;
  }
  sort_by_score(done);
  if (done.size() > static_cast<size_t>(options.n_best))
    done.resize(static_cast<size_t>(options.n_best));
  return done;
}

std::vector<Hypothesis> enumerate_hypotheses(
    const NextLogProbs& next, int64_t vocabulary, int64_t max_length, double length_penalty) {
  std::vector<Hypothesis> all;
  std::vector<Partial> generation = {Partial{}};
  for (int64_t length = 0; length <= max_length; ++length) {
    std::vector<Partial> longer;
    for (const Partial& partial : generation) {
      const std::vector<float> scores = next(with_start(partial.tokens));
      all.push_back(finished(extended(partial, 2, scores[2]), length_penalty));
      for (int32_t token = 3; token < vocabulary; ++token)
        longer.push_back(extended(partial, token, scores[static_cast<size_t>(token)]));
    }
    generation = std::move(longer);
  }
  sort_by_score(all);
  return all;
}

}  // namespace seqconv::internal::testing
