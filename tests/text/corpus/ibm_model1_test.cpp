#include "text/corpus/ibm_model1.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "base/random.h"
#include "support/errors.h"

namespace seqconv::internal {
namespace {

using testing::error_of;
using Ids = std::vector<int32_t>;
using Pairs = std::vector<std::pair<Ids, Ids>>;
using ProbabilityRows = std::vector<std::vector<WordProbability>>;

ProbabilityRows learn(
    const Pairs& pairs, int64_t source_words, int64_t target_words, int64_t iterations) {
  IbmModel1 model(source_words, target_words);
  for (const auto& [source, target] : pairs)
    model.add(source, target);
  return model.learn(iterations);
}

/// The table as the definition has it: a number for each pair of words, the
/// empty word being -1, and every way to align every sentence counted.
using Table = std::map<std::pair<int32_t, int32_t>, double>;

Table by_definition(const Pairs& pairs, int64_t target_words, int64_t times) {
  Table table;
  for (int64_t i = 0; i < times; ++i) {
    Table counts;
    std::map<int32_t, double> totals;
    for (const auto& [source, target] : pairs) {
      Ids from = source;
      from.push_back(-1);
      for (const int32_t e : target) {
        const auto t = [&](int32_t f) {
          return i == 0 ? 1.0 / static_cast<double>(target_words) : table[{f, e}];
        };
        double all = 0;
        for (const int32_t f : from)
          all += t(f);
        for (const int32_t f : from) {
          counts[{f, e}] += t(f) / all;
          totals[f] += t(f) / all;
        }
      }
    }
    table.clear();
    for (const auto& [words, count] : counts)
      table[words] = count / totals[words.first];
  }
  return table;
}

Ids random_sentence(uint64_t seed, int64_t words) {
  Ids ids;
  for (uint64_t i = 0; i <= random_word(seed, 0) % 7; ++i)
    ids.push_back(static_cast<int32_t>(random_word(seed, 1 + i) % static_cast<uint64_t>(words)));
  return ids;
}

TEST(IbmModel1, HasTheProbabilitiesOfItsDefinition) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Pairs pairs;
    for (uint64_t i = 0; i < 1 + seed * 2; ++i)
      pairs.emplace_back(
          random_sentence(mix_words(seed, 2 * i), 9),
          random_sentence(mix_words(seed, 2 * i + 1), 12));
    for (const int64_t iterations : {1, 2, 5, 12}) {
      const ProbabilityRows rows = learn(pairs, 9, 12, iterations);
      const Table wanted = by_definition(pairs, 12, iterations);
      Table found;
      for (int32_t f = 0; f < 9; ++f)
        for (const auto& [e, probability] : rows[static_cast<size_t>(f)])
          found[{f, e}] = probability;
      for (const auto& [words, probability] : wanted) {
        if (words.first < 0)
          continue;
        EXPECT_NEAR(found[words], probability, 2e-6)
            << "seed " << seed << ", " << words.first << " -> " << words.second << " after "
            << iterations;
      }
      for (const auto& [words, probability] : found)
        EXPECT_TRUE(wanted.contains(words));
    }
  }
}

TEST(IbmModel1, FindsTheTranslationsOfSmallSentences) {
  // das Haus, das Buch, ein Buch: the house, the book, a book.
  const ProbabilityRows rows =
      learn({{{0, 1}, {3, 4}}, {{0, 2}, {3, 5}}, {{6, 2}, {7, 5}}}, 7, 8, 20);
  const std::map<size_t, int32_t> wanted = {{0, 3}, {1, 4}, {2, 5}, {6, 7}};
  for (const auto& [source, target] : wanted) {
    const auto best = std::ranges::max_element(rows[source], {}, &WordProbability::probability);
    EXPECT_EQ(best->word, target);
  }
  EXPECT_TRUE(rows[3].empty());
}

TEST(IbmModel1, RowsAscendAndSumToOne) {
  Pairs pairs;
  for (uint64_t i = 0; i < 60; ++i)
    pairs.emplace_back(random_sentence(i, 20), random_sentence(i + 1000, 30));
  const ProbabilityRows rows = learn(pairs, 20, 30, 4);
  EXPECT_EQ(rows.size(), 20U);
  for (const auto& row : rows) {
    double sum = 0;
    for (size_t i = 0; i < row.size(); ++i) {
      sum += row[i].probability;
      EXPECT_TRUE(i == 0 || row[i - 1].word < row[i].word);
    }
    EXPECT_NEAR(sum, 1, 1e-4);
  }
}

TEST(IbmModel1, RefusesEmptySidesAndOtherIds) {
  IbmModel1 model(5, 7);
  const auto error = [&](const Ids& source, const Ids& target) {
    return error_of([&] { model.add(source, target); });
  };
  EXPECT_EQ(
      error({}, {1}),
      "both sides of a pair must have words to learn from, but the source has none");
  EXPECT_EQ(
      error({1}, {}),
      "both sides of a pair must have words to learn from, but the target has none");
  EXPECT_EQ(error({4, 5}, {6}), "ids of a source must be in [0, 5), but got 5");
  EXPECT_EQ(error({4}, {-1}), "ids of a target must be in [0, 7), but got -1");
  EXPECT_EQ(model.pairs(), 0);
}

}  // namespace
}  // namespace seqconv::internal
