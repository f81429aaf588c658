#include "comparison.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "random_models.h"
#include "search/step_rows.h"

namespace seqconv::internal::testing {

std::vector<SearchCase> search_cases() {
  const DecodingOptions every = {
      .beam = 5,
      .length_penalty = 0.6,
      .stepwise_length_penalty = true,
      .n_best = 4,
      .max_length_a = 0.25,
      .max_length_b = 4,
      .min_length = 3,
      .no_repeat_ngram = 2,
      .unknown_penalty = 1.5};
  return {
      {"greedy", {.beam = 1, .max_length_b = 9}, 1},
      {"beam", {.beam = 5, .n_best = 5, .max_length_b = 6}, 1},
      {"greedy batch", {.beam = 1, .max_length_b = 5}, 32},
      {"every option", every, 10, /*prefixes=*/true, {5, 9, 20}}};
}

std::vector<std::vector<Hypothesis>> run_search(
    StepDecoder& decoder, const std::vector<std::vector<int32_t>>& sources, const SearchCase& of) {
  std::vector<SearchInput> inputs;
  for (const auto& source : sources) {
    inputs.push_back({std::ssize(source) + 1, {}});
    uint64_t key = source.size();
    for (const int32_t id : source)
      key = mix_words(key, static_cast<uint64_t>(id));
    if (of.prefixes && key % 3 == 0)
      inputs.back().prefix = random_ids(1 + key % 4, decoder.vocabulary_size(), key);
  }
  return search(decoder, inputs, of.options, of.excluded);
}

std::vector<std::vector<Hypothesis>> run_search(
    const TranslationBackend& backend,
    const std::vector<std::vector<int32_t>>& sources,
    const SearchCase& of) {
  return run_search(*backend.start(sources), sources, of);
}

PairedDecoder::PairedDecoder(
    const TranslationBackend& first,
    const TranslationBackend& second,
    const std::vector<std::vector<int32_t>>& sources)
    : first_(first.start(sources)), second_(second.start(sources)) {
  EXPECT_EQ(first_->sentences(), second_->sentences());
  EXPECT_EQ(first_->vocabulary_size(), second_->vocabulary_size());
  EXPECT_EQ(first_->max_steps(), second_->max_steps());
}

namespace {

void expect_near_scores(
    const std::vector<std::vector<Candidate>>& found,
    const std::vector<std::vector<Candidate>>& wanted) {
  EXPECT_EQ(found.size(), wanted.size());
  for (size_t row = 0; row < wanted.size(); ++row) {
    EXPECT_EQ(found[row].size(), wanted[row].size()) << "row " << row;
    for (size_t i = 0; i < std::min(found[row].size(), wanted[row].size()); ++i)
      EXPECT_NEAR(found[row][i].score, wanted[row][i].score, kBound)
          << "row " << row << ", candidates " << found[row][i].token << " and "
          << wanted[row][i].token;
  }
}

}  // namespace

const std::vector<std::vector<Candidate>>& PairedDecoder::advance(
    std::span<const int32_t> parents,
    std::span<const int32_t> tokens,
    const StepConstraints& constraints,
    int64_t count) {
  const auto wanted = testing::advance_with_rows(*second_, parents, tokens, constraints, count);
  StepConstraints compared = constraints;
  if (constraints.each_row)
    compared.each_row = [&](const StepRow& row) {
      expect_near<float>(row.log_probabilities, wanted.log_probabilities.at(row.row));
      constraints.each_row(row);
    };
  const auto& found = first_->advance(parents, tokens, compared, count);
  expect_near_scores(found, wanted.best);
  return found;
}

template <class T>
void expect_near(std::span<const T> found, std::span<const T> wanted, double bound) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (std::isfinite(wanted[i]))
      ASSERT_NEAR(found[i], wanted[i], bound) << "number " << i;
    else
      ASSERT_FALSE(std::isfinite(found[i])) << "number " << i;
  }
}

template void expect_near(
    std::span<const float> found, std::span<const float> wanted, double bound);
template void expect_near(
    std::span<const double> found, std::span<const double> wanted, double bound);

std::string bytes_of(const std::vector<Hypothesis>& hypotheses) {
  std::string bytes;
  for (const Hypothesis& hypothesis : hypotheses) {
    bytes += bytes_of<int32_t>(hypothesis.tokens);
    bytes += bytes_of<float>(hypothesis.token_scores);
    bytes += bytes_of<double>({&hypothesis.log_probability, 1});
    bytes += bytes_of<double>({&hypothesis.score, 1});
  }
  return bytes;
}

}  // namespace seqconv::internal::testing
