#include "search/table_decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/random.h"

namespace seqconv::internal::testing {
namespace {

/// All tokens of a row that may come, best first, by a plain sort.
std::vector<Candidate> ranked(
    const std::vector<float>& scores,
    const RowConstraint* constraint,
    const StepConstraints& step) {
  std::vector<Candidate> all;
  for (int32_t token = 2; token < static_cast<int32_t>(scores.size()); ++token) {
    float score = scores[static_cast<size_t>(token)];
    const bool forced = constraint != nullptr && constraint->forced >= 0;
    if (forced && token != constraint->forced)
      continue;
    if (!forced && token == 3)
      score = static_cast<float>(score - step.unknown_penalty);
    if (!forced && constraint != nullptr &&
        std::count(constraint->banned.begin(), constraint->banned.end(), token) > 0)
      continue;
    if (!forced && std::count(step.excluded.begin(), step.excluded.end(), token) > 0)
      continue;
    if (std::isfinite(score))
      all.push_back({token, score});
  }
  std::stable_sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
    return a.score > b.score;
  });
  return all;
}

/// Asked tokens that are possible and not there.
void add_asked(
    const std::vector<float>& scores,
    const std::vector<int32_t>& asked,
    std::vector<Candidate>& candidates) {
  for (const int32_t token : asked) {
    const float score = scores[static_cast<size_t>(token)];
    const bool is_there = std::ranges::count(candidates, token, &Candidate::token) > 0;
    if (!is_there && std::isfinite(score))
      candidates.push_back({token, score});
  }
}

}  // namespace

std::vector<float> RandomTable::log_probs(
    int64_t sentence, std::span<const int32_t> history) const {
  uint64_t key = mix_words(seed, static_cast<uint64_t>(sentence));
  const size_t used = std::min(history.size(), static_cast<size_t>(context));
  for (const int32_t token : history.last(used))
    key = mix_words(key, static_cast<uint64_t>(token));

  const size_t size = static_cast<size_t>(vocabulary);
  std::vector<double> logits(size);
  double sum = 0;
  for (size_t i = 0; i < size; ++i) {
    logits[i] = 4.0 * random_word(key, i) / 4294967296.0;
    sum += std::exp(logits[i]);
  }
  std::vector<float> result(size);
  for (size_t i = 0; i < size; ++i) {
    result[i] = static_cast<float>(logits[i] - std::log(sum));
    if (grid > 0)
      result[i] = std::round(result[i] / grid) * grid;
    const uint32_t fate = random_word(key, size + i);
    if (fate < impossible * 4294967296.0)
      result[i] = fate % 2 == 0 ? -std::numeric_limits<float>::infinity()
                                : std::numeric_limits<float>::quiet_NaN();
  }
  return result;
}

const std::vector<std::vector<Candidate>>& TableDecoder::advance(
    std::span<const int32_t> parents,
    std::span<const int32_t> tokens,
    const StepConstraints& constraints,
    int64_t count) {
  EXPECT_EQ(parents.size(), tokens.size());
  EXPECT_LT(steps_, max_steps_) << "more steps than the decoder can make";
  EXPECT_GT(count, 0);
  EXPECT_TRUE(constraints.rows.empty() || constraints.rows.size() == parents.size());
  if (steps_ == 0) {
    EXPECT_EQ(parents.size(), ids_.size());
    for (const int64_t id : ids_)
      rows_.push_back({id, {}});
  }
  std::vector<Row> rows;
  for (size_t r = 0; r < parents.size(); ++r) {
    const size_t parent = static_cast<size_t>(parents[r]);
    if (parent >= rows_.size())
      throw std::out_of_range("parent row does not exist");
    check_continues(parent, tokens[r]);
    rows.push_back(rows_[parent]);
    rows.back().history.push_back(tokens[r]);
  }
  rows_ = std::move(rows);
  candidates_.clear();
  for (size_t r = 0; r < rows_.size(); ++r) {
    const RowConstraint* constraint = constraints.rows.empty() ? nullptr : &constraints.rows[r];
    candidates_.push_back(ranked(scores(rows_[r]), constraint, constraints));
  }
  offered_ = candidates_;
  for (auto& row : candidates_)
    row.resize(std::min(row.size(), static_cast<size_t>(count)));
  for (size_t r = 0; r < constraints.rows.size(); ++r)
    add_asked(scores(rows_[r]), constraints.rows[r].asked, candidates_[r]);
  if (!constraints.each_row)
    offered_ = candidates_;
  ++steps_;
  rows_by_step_.push_back(rows_.size());
  for (size_t r = 0; constraints.each_row && r < rows_.size(); ++r)
    constraints.each_row({r, candidates_[r], scores(rows_[r])});
  return candidates_;
}

void TableDecoder::check_continues(size_t parent, int32_t token) const {
  if (steps_ == 0) {
    EXPECT_EQ(token, 2) << "every target starts with </s>";
    return;
  }
  EXPECT_NE(token, 2) << "a finished hypothesis must not go on";
  const auto& offered = offered_[parent];
  EXPECT_TRUE(std::any_of(
      offered.begin(), offered.end(), [&](const Candidate& c) { return c.token == token; }))
      << "token " << token << " was not offered by row " << parent;
}

}  // namespace seqconv::internal::testing
