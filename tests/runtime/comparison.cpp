#include "comparison.h"

#include <gtest/gtest.h>

#include <cmath>

#include "random_models.h"
#include "seqconv/base/random.h"

namespace seqconv::testing {

std::vector<SearchCase> search_cases() {
  const SearchOptions every = {
      .beam = 5,
      .length_penalty = 0.6,
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
    const TranslationBackend& backend,
    const std::vector<std::vector<int32_t>>& sources,
    const SearchCase& of) {
  const auto decoder = backend.start(sources);
  std::vector<SearchInput> inputs;
  for (const auto& source : sources) {
    inputs.push_back({std::ssize(source) + 1, {}});
    uint64_t key = source.size();
    for (const int32_t id : source)
      key = mix_words(key, static_cast<uint64_t>(id));
    if (of.prefixes && key % 3 == 0)
      inputs.back().prefix =
          random_ids(1 + key % 4, decoder->vocabulary_size(), key);
  }
  return search(*decoder, inputs, of.options, of.excluded);
}

namespace {

void expect_alike(const Hypothesis& found, const Hypothesis& wanted) {
  EXPECT_NEAR(found.score, wanted.score, kBound)
      << (found.tokens == wanted.tokens ? "another score"
                                        : "another hypothesis, and no tie");
  if (found.tokens != wanted.tokens)
    return;
  EXPECT_NEAR(found.log_probability, wanted.log_probability, kBound);
  expect_near<float>(found.token_scores, wanted.token_scores);
}

}  // namespace

void expect_alike(
    const std::vector<std::vector<Hypothesis>>& found,
    const std::vector<std::vector<Hypothesis>>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    ASSERT_EQ(found[i].size(), wanted[i].size()) << "sentence " << i;
    for (size_t n = 0; n < wanted[i].size(); ++n) {
      SCOPED_TRACE(concat("sentence ", i, ", hypothesis ", n));
      expect_alike(found[i][n], wanted[i][n]);
    }
  }
}

template <class T>
void expect_near(
    std::span<const T> found,
    std::span<const T> wanted,
    double bound) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (std::isfinite(wanted[i]))
      ASSERT_NEAR(found[i], wanted[i], bound) << "number " << i;
    else
      ASSERT_FALSE(std::isfinite(found[i])) << "number " << i;
  }
}

template void expect_near(
    std::span<const float> found,
    std::span<const float> wanted,
    double bound);
template void expect_near(
    std::span<const double> found,
    std::span<const double> wanted,
    double bound);

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

}  // namespace seqconv::testing
