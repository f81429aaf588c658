#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <thread>

#include "runtime/runtime_backends.h"
#include "search/sampled_search.h"
#include "search/step_rows.h"
#include "sound_models.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

// Translations that may hold some words alone: other words never come, and
// probabilities are those of a model that does not know them.
namespace seqconv::internal {
namespace {

using testing::error_of;
using testing::expect_same_bytes;
using ::testing::HasSubstr;

using Lists = std::vector<std::vector<int32_t>>;
using Backend = std::shared_ptr<const TranslationBackend>;

constexpr int32_t kListedWords = 23;  // of the target

class WordListsOfRuntime : public ::testing::Test {
 protected:
  /// Models of these kinds; `first`: the number of the first one.
  Backend open(const std::vector<MixerKind>& kinds, bool own_width = false, uint64_t first = 0) {
    std::vector<ModelToRun> models;
    for (const MixerKind kind : kinds) {
      ModelOptions options = testing::options_of(kind, Task::kTranslation);
      if (own_width) {
        options.tie = Tying::kNone;
        options.output_dim = 6;
      }
      models.push_back(testing::write_sound_model(
          options,
          Task::kTranslation,
          folder_.path() / concat("model", models.size()),
          first + models.size()));
    }
    return RuntimeBackends(compute_).translation(models);
  }

  ComputeType compute_ = ComputeType::kModel;

 private:
  testing::TemporaryFolder folder_;
};

/// More of them than are taken together.
Lists made_sources() {
  Lists sources;
  for (uint64_t i = 0; i < 21; ++i) {
    auto& source = sources.emplace_back();
    for (uint64_t length = i * 7 % 12; source.size() < length;)
      source.push_back(3 + static_cast<int32_t>(random_word(i, source.size()) % 16));
  }
  return sources;
}

/// A list each, </s> always there.
Lists made_lists(size_t count) {
  Lists lists(count);
  for (size_t i = 0; i < count; ++i)
    for (int32_t word = 0; word < kListedWords; ++word)
      if (word == kEndId || random_word(i + 50, static_cast<uint64_t>(word)) % 3 == 0)
        lists[i].push_back(word);
  return lists;
}

std::vector<std::vector<Hypothesis>> searched(StepDecoder& decoder, const Lists& sources) {
  std::vector<SearchInput> inputs;
  for (const auto& source : sources)
    inputs.push_back({.source_length = std::ssize(source) + 1});
  return search(
      decoder, inputs, {.beam = 3, .n_best = 2, .max_length_b = 12, .unknown_penalty = 0.5});
}

std::vector<std::vector<Hypothesis>> drawn(StepDecoder& decoder, const Lists& sources) {
  std::vector<SampledInput> inputs;
  for (const auto& source : sources)
    inputs.push_back({{std::ssize(source) + 1, {}}, source.size() + 5});
  return sampled_search(decoder, inputs, {.n_best = 3, .max_length_b = 12}, {.temperature = 2});
}

void expect_same_results(
    const std::vector<std::vector<Hypothesis>>& found,
    const std::vector<std::vector<Hypothesis>>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i].size(), wanted[i].size());
    for (size_t n = 0; n < found[i].size(); ++n)
      expect_same_bytes(found[i][n], wanted[i][n]);
  }
}

TEST_F(WordListsOfRuntime, ThatHoldAllWordsChangeNothing) {
  const Lists sources = made_sources();
  std::vector<int32_t> all(kListedWords);
  std::iota(all.begin(), all.end(), 0);
  const Lists lists(sources.size(), all);
  for (const auto& [name, compute] : EnumNames<ComputeType>::kNames)
    for (const bool own_width : {false, true}) {
      SCOPED_TRACE(name);
      compute_ = compute;
      const Backend backend = open({MixerKind::kDynamicConv, MixerKind::kTalk}, own_width);
      for (const auto& find : {searched, drawn})
        expect_same_results(
            find(*backend->start_within(sources, lists), sources),
            find(*backend->start(sources), sources));
    }
}

TEST_F(WordListsOfRuntime, LetNoOtherWordCome) {
  const Backend backend = open({MixerKind::kLightConv});
  const Lists sources = made_sources(), lists = made_lists(sources.size());
  std::set<int32_t> seen;
  for (const auto& find : {searched, drawn}) {
    const auto found = find(*backend->start_within(sources, lists), sources);
    for (size_t i = 0; i < sources.size(); ++i)
      for (const Hypothesis& hypothesis : found[i])
        for (const int32_t token : hypothesis.tokens) {
          EXPECT_TRUE(std::ranges::binary_search(lists[i], token));
          seen.insert(token);
        }
  }
  EXPECT_GT(seen.size(), 10u);  // or it would not be much of a test
}

/// The lists of rows.
Lists lists_of(const std::vector<int32_t>& rows, const Lists& of) {
  Lists own;
  for (const int32_t row : rows)
    own.push_back(of[static_cast<size_t>(row)]);
  return own;
}

/// A step must give out for listed words the full model's, less the
/// logarithm of all that is listed.
void expect_restricted(
    const testing::StepRows& found, const testing::StepRows& full, const Lists& list_of_row) {
  for (size_t row = 0; row < list_of_row.size(); ++row) {
    const auto& all = full.log_probabilities.at(row);
    const auto& own = found.log_probabilities.at(row);
    ASSERT_EQ(own.size(), all.size());
    double sum = 0;
    for (const int32_t word : list_of_row[row])
      sum += std::exp(static_cast<double>(all[static_cast<size_t>(word)]));
    for (int32_t word = 0; word < kListedWords; ++word) {
      const auto at = static_cast<size_t>(word);
      if (std::ranges::binary_search(list_of_row[row], word))
        EXPECT_NEAR(own[at], all[at] - std::log(sum), 1e-4);
      else
        EXPECT_EQ(own[at], -std::numeric_limits<float>::infinity());
    }
  }
}

TEST_F(WordListsOfRuntime, GiveTheProbabilitiesOfAModelWithoutTheOthers) {
  const Lists sources = made_sources(), lists = made_lists(sources.size());
  for (const bool own_width : {false, true}) {
    const Backend backend = open({MixerKind::kDynamicConv}, own_width);
    const auto some = backend->start_within(sources, lists);
    const auto full = backend->start(sources);
    // Rows in no order, so that sentences of other groups lie in between.
    const std::vector<int32_t> rows = {20, 0, 9, 1, 8, 7, 16, 0, 15};
    std::vector<int32_t> tokens(rows.size(), kEndId);
    std::vector<int32_t> parents = rows;
    Lists own = lists_of(rows, lists);
    for (int step = 0; step < 3; ++step) {
      const auto step_of = [&](StepDecoder& decoder) {
        return testing::advance_with_rows(decoder, parents, tokens, {}, 4);
      };
      expect_restricted(step_of(*some), step_of(*full), own);
      parents = step == 0 ? std::vector{8, 8, 2, 3, 0} : std::vector{4, 1, 1, 0, 3};
      own = lists_of(parents, own);
      tokens = {4, 2, 11, 6, 22};
    }
  }
}

TEST_F(WordListsOfRuntime, OfAnEnsembleAreThoseOfEveryModel) {
  const std::vector<MixerKind> kinds = {MixerKind::kTalk, MixerKind::kAverageAttention};
  const Lists sources = made_sources(), lists = made_lists(sources.size());
  const auto both = open(kinds)->start_within(sources, lists);
  const auto first = open({kinds[0]})->start_within(sources, lists);
  const auto second = open({kinds[1]}, /*own_width=*/false, 1)->start_within(sources, lists);
  std::vector<int32_t> rows(sources.size());
  std::iota(rows.begin(), rows.end(), 0);
  const std::vector<int32_t> ends(rows.size(), kEndId);
  const auto step_of = [&](StepDecoder& decoder) {
    return testing::advance_with_rows(decoder, rows, ends, {}, kListedWords);
  };
  const auto all = step_of(*both), of_first = step_of(*first), of_second = step_of(*second);
  for (size_t i = 0; i < rows.size(); ++i) {
    double sum = 0;
    for (const int32_t word : lists[i]) {
      const auto probability = [&](const testing::StepRows& of) {
        return std::exp(of.log_probabilities.at(i).at(static_cast<size_t>(word)));
      };
      sum += probability(all);
      EXPECT_NEAR(probability(all), (probability(of_first) + probability(of_second)) / 2, 1e-5);
    }
    EXPECT_NEAR(sum, 1, 1e-4);
    const auto listed = std::ranges::count_if(lists[i], is_producible);
    EXPECT_EQ(std::ssize(all.best[i]), listed);
  }
}

TEST_F(WordListsOfRuntime, GiveASentenceTheSameBesideAnyOthers) {
  const Lists sources = made_sources(), lists = made_lists(sources.size());
  for (const auto& [compute, find] :
       {std::pair{ComputeType::kFloat32, &searched},
        {ComputeType::kFloat32, &drawn},
        {ComputeType::kInt8, &searched}}) {
    compute_ = compute;
    const Backend backend = open({MixerKind::kDynamicConv, MixerKind::kSelfAttention});
    const auto together = find(*backend->start_within(sources, lists), sources);
    std::vector<std::vector<std::vector<Hypothesis>>> alone(sources.size());
    {
      std::vector<std::jthread> threads;
      for (size_t first = 0; first < 3; ++first)
        threads.emplace_back([&, first, &run = find] {
          for (size_t i = first; i < sources.size(); i += 3)
            alone[i] = run(*backend->start_within({sources[i]}, {lists[i]}), {sources[i]});
        });
    }
    for (size_t i = 0; i < sources.size(); ++i)
      expect_same_results({together[i]}, alone[i]);
  }
}

TEST_F(WordListsOfRuntime, MayHoldTheEndAlone) {
  const Backend backend = open({MixerKind::kCnn});
  const auto found = searched(*backend->start_within({{4, 5}}, {{2}}), {{4, 5}});
  ASSERT_FALSE(found[0].empty());
  EXPECT_EQ(found[0][0].tokens, std::vector<int32_t>{kEndId});
}

TEST_F(WordListsOfRuntime, AreRefusedWhereTheyMakeNoSense) {
  const Backend backend = open({MixerKind::kLightConv});
  EXPECT_TRUE(backend->limits_words());
  const auto error = [&](const Lists& lists) {
    return error_of([&] { backend->start_within({{4}, {5, 6}}, lists); });
  };
  EXPECT_THAT(error({{2}}), HasSubstr("there are 2 and 1"));
  EXPECT_THAT(error({{2}, {}}), HasSubstr("</s> must be among the words"));
  EXPECT_THAT(error({{2}, {3, 4}}), HasSubstr("</s> must be among the words"));
  EXPECT_EQ(error({{2}, {2, 23}}), "listed words must be in [0, 23), but got 23");
  EXPECT_EQ(error({{-1, 2}, {2}}), "listed words must be in [0, 23), but got -1");
  EXPECT_EQ(error({{2}, {2, 7, 7}}), "listed words must ascend, but got 7 after 7");
  EXPECT_NE(error_of([&] { backend->start_within({}, {}); }), "");
}

}  // namespace
}  // namespace seqconv::internal
