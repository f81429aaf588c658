#include "search/sampled_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/random.h"
#include "base/special_ids.h"
#include "search/constraints.h"
#include "search/search_inputs.h"

namespace seqconv::internal {
namespace {

/// A translation that is being drawn, and its row of the decoder.
struct Draw {
  size_t sentence = 0;
  uint64_t number = 0;  ///< of the sentence's draws
  int32_t row = 0;
  Hypothesis drawn;
  decode::RepeatedNgrams ngrams;
  int32_t last = -1;  ///< of their tokens

  bool ended() const { return !drawn.tokens.empty() && drawn.tokens.back() == kEndId; }
};

/// The best tokens of a row, as many as a draw asks for.
class BestTokens : public NextTokens {
 public:
  BestTokens(std::span<const Candidate> best, int64_t vocabulary_size)
      : best_(best), vocabulary_size_(vocabulary_size) {}

  int64_t vocabulary_size() const override { return vocabulary_size_; }
  std::span<const float> log_probabilities() override {
    fail("a draw asked for the best tokens, and now for all");
  }
  void best(const RowConstraint& constraint, int64_t count, std::vector<Candidate>& out) override {
    out.clear();
    for (const Candidate& candidate : best_)
      if (std::ssize(out) < count &&
          std::ranges::find(constraint.banned, candidate.token) == constraint.banned.end())
        out.push_back(candidate);
  }

 private:
  std::span<const Candidate> best_;
  int64_t vocabulary_size_;
};

class SampledSearch {
 public:
  SampledSearch(
      StepDecoder& decoder,
      const std::vector<SampledInput>& inputs,
      const DecodingOptions& options,
      const SamplingOptions& sampling,
      std::span<const int32_t> excluded,
      const FoundHypotheses& found,
      const SharedTokens& shared)
      : decoder_(decoder),
        inputs_(inputs),
        options_(options),
        sampler_(sampling),
        enough_(candidates_for(sampling)),
        excluded_(excluded),
        found_(found),
        shared_(shared) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      limits_.push_back(decode::make_limits(options, inputs[i].sentence, decoder.max_steps()));
      for (int64_t n = 0; n < options.n_best; ++n)
        running_.push_back(
            {i,
             static_cast<uint64_t>(n),
             static_cast<int32_t>(i),
             {},
             decode::RepeatedNgrams(options.no_repeat_ngram)});
    }
    results_.resize(inputs.size());
  }

  void run() {
    for (int64_t step = 0; !running_.empty(); ++step) {
      make_rows(step);
      StepConstraints constraints{
          .unknown_penalty = options_.unknown_penalty, .excluded = excluded_, .rows = constraints_};
      const auto draw_row = [&](const StepRow& row) {
        for (Draw& draw : draws_of(row.row, step))
          extend(draw, row, step);
      };
      if (enough_ == 0)
        constraints.each_row = draw_row;
      const auto& best =
          decoder_.advance(parents_, tokens_, constraints, std::max<int64_t>(enough_, 1));
      for (size_t row = 0; enough_ > 0 && row < best.size(); ++row)
        draw_row({row, best[row], {}});
      retire();
      if (shared_)
        tell_shared();
    }
  }

 private:
  /// Candidates of a row that are enough for a draw, 0 where it needs all
  /// log-probabilities. The search's constraints hold for candidates, but <unk>
  /// may be one that a draw leaves out; its penalty is rounded in another way.
  int64_t candidates_for(const SamplingOptions& sampling) const {
    const int64_t asked = options_.unknown_penalty == 0 ? sampler_.asks_for() : 0;
    return asked == 0
        ? 0
        : std::min(asked, decoder_.vocabulary_size()) + (sampling.ban_unknown ? 1 : 0);
  }

  /// In the first step all draws of a sentence share its row.
  std::span<Draw> draws_of(size_t row, int64_t step) {
    const size_t shared = step == 0 ? static_cast<size_t>(options_.n_best) : size_t{1};
    return std::span(running_).subspan(row * shared, shared);
  }

  void make_rows(int64_t step) {
    parents_.clear();
    tokens_.clear();
    constraints_.clear();
    for (Draw& draw : running_) {
      if (step == 0 && draw.number > 0)
        continue;
      parents_.push_back(draw.row);
      tokens_.push_back(step == 0 ? kEndId : draw.drawn.tokens.back());
      constraints_.push_back(constraint(draw, step));
      if (step > 0)
        draw.row = static_cast<int32_t>(parents_.size()) - 1;
    }
  }

  RowConstraint constraint(const Draw& draw, int64_t step) const {
    return decode::row_constraint(limits_[draw.sentence], step, draw.ngrams, draw.last);
  }

  void extend(Draw& draw, const StepRow& row, int64_t step) {
    if (row.best.empty())  // as in a beam search that has nowhere to go
      return append(draw, kEndId, -std::numeric_limits<float>::infinity());
    if (constraints_[row.row].forced >= 0)
      return append(draw, row.best.front().token, row.best.front().score);
    const SampledToken token = draw_next(
        row,
        uniform_number(
            mix_words(inputs_[draw.sentence].seed, draw.number), static_cast<uint64_t>(step)));
    append(draw, token.token, token.log_probability);
  }

  SampledToken draw_next(const StepRow& row, double uniform) {
    const auto bans = banned(constraints_[row.row]);
    if (enough_ == 0)
      return sampler_.draw(penalized(row.log_probabilities), bans, uniform);
    BestTokens next(row.best, decoder_.vocabulary_size());
    return sampler_.draw(next, bans, uniform);
  }

  std::span<const float> penalized(std::span<const float> all) {
    if (options_.unknown_penalty == 0 || all.size() <= kUnknownId)
      return all;
    scores_.assign(all.begin(), all.end());
    scores_[kUnknownId] -= static_cast<float>(options_.unknown_penalty);
    return scores_;
  }

  std::span<const int32_t> banned(const RowConstraint& constraint) {
    if (constraint.banned.empty())
      return excluded_;
    banned_ = constraint.banned;
    banned_.insert(banned_.end(), excluded_.begin(), excluded_.end());
    return banned_;
  }

  static void append(Draw& draw, int32_t token, float score) {
    draw.drawn.tokens.push_back(token);
    draw.drawn.token_scores.push_back(score);
    draw.drawn.log_probability += score;
    draw.last = draw.ngrams.add(draw.last, token);
  }

  /// Draws that have ended leave.
  void retire() {
    for (Draw& draw : running_)
      if (draw.ended()) {
        Hypothesis& drawn = draw.drawn;
        drawn.score = drawn.log_probability /
            std::pow(static_cast<double>(drawn.tokens.size()), options_.length_penalty);
        results_[draw.sentence].push_back(std::move(drawn));
        if (std::ssize(results_[draw.sentence]) == options_.n_best)
          tell(draw.sentence);
        draw.row = -1;
      }
    std::erase_if(running_, [](const Draw& draw) { return draw.row < 0; });
  }

  /// Tells the tokens of a sentence with one draw; of several none is known to be the best.
  void tell_shared() {
    if (options_.n_best == 1)
      for (const Draw& draw : running_)
        shared_(draw.sentence, draw.drawn.tokens);
  }

  void tell(size_t sentence) {
    std::vector<Hypothesis> drawn = std::move(results_[sentence]);
    std::stable_sort(drawn.begin(), drawn.end(), [](const Hypothesis& a, const Hypothesis& b) {
      return a.score > b.score;
    });
    found_(sentence, std::move(drawn));
  }

  StepDecoder& decoder_;
  const std::vector<SampledInput>& inputs_;
  const DecodingOptions& options_;
  Sampler sampler_;
  int64_t enough_;
  std::span<const int32_t> excluded_;
  const FoundHypotheses& found_;
  const SharedTokens& shared_;
  std::vector<decode::Limits> limits_;
  std::vector<Draw> running_;
  std::vector<std::vector<Hypothesis>> results_;
  std::vector<int32_t> parents_;
  std::vector<int32_t> tokens_;
  std::vector<RowConstraint> constraints_;
  std::vector<int32_t> banned_;
  std::vector<float> scores_;
};

}  // namespace

DecodingOptions without_beam(DecodingOptions options) {
  options.beam = std::max(options.beam, options.n_best);
  return options;
}

void refuse_beside_draws(const SearchOptions& given, const OptionNames& names) {
  const char* const key = given.beam  ? "beam"
      : given.stepwise_length_penalty ? "stepwise_length_penalty"
                                      : nullptr;
  if (key != nullptr)
    fail_usage(
        names(key),
        " is that of a search, but translations are drawn; ",
        names("n_best"),
        " says how many");
}

void refuse_without_draws(
    const std::vector<std::string>& given, const OptionNames& names, const std::string& draw) {
  for (const std::string& key : given)
    if (key != "ban_unknown")  // which a search heeds too
      fail_usage(
          names(key), " is that of draws, but translations are searched for: it needs ", draw);
}

void sampled_search(
    StepDecoder& decoder,
    const std::vector<SampledInput>& inputs,
    const DecodingOptions& options,
    const SamplingOptions& sampling,
    std::span<const int32_t> excluded,
    const FoundHypotheses& found,
    const SharedTokens& shared) {
  without_beam(options).check_values("");
  std::vector<SearchInput> sentences;
  for (const SampledInput& input : inputs)
    sentences.push_back(input.sentence);
  decode::check_inputs(decoder, sentences, excluded);
  SampledSearch(decoder, inputs, options, sampling, excluded, found, shared).run();
}

std::vector<std::vector<Hypothesis>> sampled_search(
    StepDecoder& decoder,
    const std::vector<SampledInput>& inputs,
    const DecodingOptions& options,
    const SamplingOptions& sampling,
    std::span<const int32_t> excluded) {
  std::vector<std::vector<Hypothesis>> results(inputs.size());
  sampled_search(
      decoder,
      inputs,
      options,
      sampling,
      excluded,
      [&](size_t sentence, std::vector<Hypothesis> drawn) {
        results[sentence] = std::move(drawn);
      });
  return results;
}

}  // namespace seqconv::internal
