#include "search/search.h"

#include <algorithm>

#include "base/error.h"
#include "base/option_checks.h"
#include "search/beam.h"
#include "search/candidates.h"
#include "search/constraints.h"
#include "search/search_inputs.h"

namespace seqconv::internal {
namespace {

// A model that never says </s> must come to an end all the same.
constexpr double kMaxLengthFactor = 1000;

// Powers of any length that a translation has are finite numbers above 0.
constexpr double kMaxLengthPenalty = 50;
// A float holds it, and log-probabilities beside it.
constexpr double kMaxUnknownPenalty = 1e30;
constexpr int64_t kMostTokens = 1'000'000;

/// UsageError where no translation is both as long and as short as wanted,
/// however long its source is.
void check_lengths(const OptionNames& names, const DecodingOptions& options) {
  // One token, the default, is one where there is room for it.
  const bool room =
      options.max_length_a > 0 || options.min_length <= std::max<int64_t>(options.max_length_b, 1);
  if (!room)
    fail_usage(
        names("min_length"),
        " must be at most ",
        names("max_length_b"),
        " (",
        options.max_length_b,
        ") where ",
        names("max_length_a"),
        " is 0, but got ",
        options.min_length);
}

/// The beams of all sentences and the decoder's rows that belong to them.
/// Rows stand in the order of the sentences, then of their hypotheses.
class Search {
 public:
  Search(
      StepDecoder& decoder,
      const std::vector<SearchInput>& inputs,
      const DecodingOptions& options,
      std::span<const int32_t> excluded,
      const FoundHypotheses& found,
      const SharedTokens& shared)
      : decoder_(decoder), options_(options), found_(found), shared_(shared), excluded_(excluded) {
    int64_t widest = 0;
    for (const SearchInput& input : inputs) {
      decode::Beam& beam = beams_.emplace_back();
      beam.limits = decode::make_limits(options, input, decoder.max_steps());
      beam.ngrams = decode::RepeatedNgrams(options.no_repeat_ngram);
      widest = std::max(widest, beam.width(options));
      running_.push_back({running_.size(), static_cast<int32_t>(parents_.size())});
      parents_.push_back(static_cast<int32_t>(parents_.size()));
      tokens_.push_back(kEndId);
    }
    per_row_ = std::min(2 * widest, decoder.vocabulary_size() - 1);
  }

  void run() {
    for (int64_t step = 0; !running_.empty(); ++step) {
      update_beams(step, ask_decoder(step));
      gather_rows();
    }
  }

 private:
  /// A sentence that is not done, and the first of its rows.
  struct Running {
    size_t sentence = 0;
    int32_t first_row = 0;
  };

  std::span<const std::vector<Candidate>> ask_decoder(int64_t step) {
    StepConstraints constraints;
    constraints.unknown_penalty = options_.unknown_penalty;
    constraints.excluded = excluded_;
    constraints.rows = row_constraints(step);
    const std::span<const std::vector<Candidate>> rows =
        decoder_.advance(parents_, tokens_, constraints, per_row_);
    SEQCONV_CHECK(
        rows.size() == parents_.size(),
        "the decoder must give candidates for ",
        parents_.size(),
        " rows, but gave ",
        rows.size());
    return rows;
  }

  /// One entry a row, or nothing in a step that constrains no row.
  std::span<const RowConstraint> row_constraints(int64_t step) {
    constraints_.clear();
    const bool any = std::any_of(running_.begin(), running_.end(), [&](const Running& running) {
      return decode::constrains(beams_[running.sentence].limits, step);
    });
    if (!any)
      return {};
    for (const Running& running : running_) {
      const decode::Beam& beam = beams_[running.sentence];
      for (const decode::LiveHypothesis& live : beam.live)
        constraints_.push_back(
            decode::row_constraint(beam.limits, step, beam.ngrams, live.node, live.terms));
    }
    return constraints_;
  }

  void update_beams(int64_t step, std::span<const std::vector<Candidate>> rows) {
    for (const Running& running : running_) {
      decode::Beam& beam = beams_[running.sentence];
      const auto own = rows.subspan(static_cast<size_t>(running.first_row), beam.live.size());
      decode::advance(beam, step, own, decoder_.vocabulary_size(), options_);
    }
  }

  /// The rows of the next step: sentences that are done leave.
  void gather_rows() {
    parents_.clear();
    tokens_.clear();
    std::vector<Running> still_running;
    for (const Running& running : running_) {
      decode::Beam& beam = beams_[running.sentence];
      if (beam.live.empty()) {
        found_(running.sentence, decode::best_finished(std::move(beam), options_.n_best));
        beam = {};
        continue;
      }
      if (shared_)
        tell_shared(running.sentence);
      still_running.push_back({running.sentence, static_cast<int32_t>(parents_.size())});
      for (const decode::LiveHypothesis& live : beam.live) {
        parents_.push_back(running.first_row + live.row);
        tokens_.push_back(beam.nodes[static_cast<size_t>(live.node)].token);
      }
    }
    running_ = std::move(still_running);
  }

  void tell_shared(size_t sentence) {
    shared_lengths_.resize(beams_.size());
    const std::vector<int32_t> tokens = decode::shared_tokens(beams_[sentence]);
    if (tokens.size() <= shared_lengths_[sentence])
      return;
    shared_lengths_[sentence] = tokens.size();
    shared_(sentence, tokens);
  }

  StepDecoder& decoder_;
  const DecodingOptions& options_;
  const FoundHypotheses& found_;
  const SharedTokens& shared_;
  std::vector<size_t> shared_lengths_;  // that were told
  std::span<const int32_t> excluded_;
  int64_t per_row_ = 0;  // candidates to ask for: more cannot matter
  std::vector<decode::Beam> beams_;
  std::vector<Running> running_;
  std::vector<int32_t> parents_;
  std::vector<int32_t> tokens_;
  std::vector<RowConstraint> constraints_;
};

}  // namespace

DecodingOptions resolve_search(const SearchOptions& given, DecodingOptions model) {
  const auto set = [](auto& option, const auto& value) { option = value.value_or(option); };
  set(model.beam, given.beam);
  set(model.length_penalty, given.length_penalty);
  set(model.stepwise_length_penalty, given.stepwise_length_penalty);
  set(model.n_best, given.n_best);
  set(model.max_length_a, given.max_length_a);
  set(model.max_length_b, given.max_length_b);
  set(model.min_length, given.min_length);
  set(model.no_repeat_ngram, given.no_repeat_ngram);
  set(model.unknown_penalty, given.unknown_penalty);
  if (!given.n_best)
    model.n_best = std::min(model.n_best, model.beam);
  return model;
}

void DecodingOptions::check_values(const OptionNames& names) const {
  if (n_best > kMaxBeam)  // of draws, which have no beam
    check_between<int64_t>(names, "n_best", n_best, 1, kMaxBeam);
  check_between<int64_t>(names, "beam", beam, 1, kMaxBeam);
  if (n_best < 1 || n_best > beam)
    fail_usage(names("n_best"), " must be between 1 and the beam (", beam, "), but got ", n_best);
  check_between(names, "length_penalty", length_penalty, -kMaxLengthPenalty, kMaxLengthPenalty);
  check_between(names, "max_length_a", max_length_a, 0.0, kMaxLengthFactor);
  check_between<int64_t>(names, "max_length_b", max_length_b, 0, kMostTokens);
  check_between<int64_t>(names, "min_length", min_length, 0, kMostTokens);
  check_between<int64_t>(names, "no_repeat_ngram", no_repeat_ngram, 0, kMostTokens);
  check_between(names, "unknown_penalty", unknown_penalty, -kMaxUnknownPenalty, kMaxUnknownPenalty);
}

void DecodingOptions::validate(const OptionNames& names) const {
  check_values(names);
  check_lengths(names, *this);
}

int64_t maximum_length(const DecodingOptions& options, int64_t source_length, int64_t max_steps) {
  const int64_t limit = max_steps - 1;
  const double wanted = options.max_length_a * static_cast<double>(source_length) +
      static_cast<double>(options.max_length_b);
  // Compared as doubles first: the product may not fit an integer.
  if (wanted >= static_cast<double>(limit))
    return limit;
  return static_cast<int64_t>(wanted);
}

void search(
    StepDecoder& decoder,
    const std::vector<SearchInput>& inputs,
    const DecodingOptions& options,
    std::span<const int32_t> excluded,
    const FoundHypotheses& found,
    const SharedTokens& shared) {
  options.check_values("");
  decode::check_inputs(decoder, inputs, excluded);
  Search(decoder, inputs, options, excluded, found, shared).run();
}

std::vector<std::vector<Hypothesis>> search(
    StepDecoder& decoder,
    const std::vector<SearchInput>& inputs,
    const DecodingOptions& options,
    std::span<const int32_t> excluded) {
  std::vector<std::vector<Hypothesis>> results(inputs.size());
  search(decoder, inputs, options, excluded, [&](size_t sentence, std::vector<Hypothesis> best) {
    results[sentence] = std::move(best);
  });
  return results;
}

}  // namespace seqconv::internal
