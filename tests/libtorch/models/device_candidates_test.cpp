#include "libtorch/models/device_candidates.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "base/special_ids.h"
#include "search/candidates.h"
#include "search/search.h"
#include "search/wrapped_decoder.h"
#include "support/errors.h"
#include "support/rounds.h"
#include "test_models.h"

// What is chosen where the scores lie is what the host would choose.
namespace seqconv::internal {
namespace {

using Rows = std::vector<std::vector<std::pair<int32_t, float>>>;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

Rows rows_of(const std::vector<std::vector<Candidate>>& candidates) {
  Rows rows;
  for (const auto& row : candidates) {
    auto& pairs = rows.emplace_back();
    for (const Candidate& candidate : row)
      pairs.emplace_back(candidate.token, candidate.score);
  }
  return rows;
}

/// The host's choice; nothing where a row has no probability.
Rows chosen_here(const at::Tensor& scores, const StepConstraints& constraints, int64_t count) {
  const at::Tensor whole = scores.contiguous();
  const auto words = static_cast<size_t>(whole.size(1));
  std::vector<std::vector<Candidate>> out(static_cast<size_t>(whole.size(0)));
  for (size_t row = 0; row < out.size(); ++row)
    select_row(
        {{whole.const_data_ptr<float>() + row * words, words}}, constraints, row, count, out[row]);
  return rows_of(out);
}

Rows chosen_there(const at::Tensor& scores, const StepConstraints& constraints, int64_t count) {
  std::vector<std::vector<Candidate>> out = {{{1, 2.0F}}};
  select_rows(scores, constraints, count, out);
  return rows_of(out);
}

template <class Choice>
std::optional<Rows> unless_none_is_finite(const Choice& choice) {
  try {
    return choice();
  } catch (const NoProbability&) {
    return std::nullopt;
  }
}

/// Many equal ones, zeros of both signs, and in some rows little else than what
/// is no number.
at::Tensor made_scores(int64_t rows, int64_t words, std::mt19937_64& random) {
  at::Tensor scores = at::empty({rows, words});
  auto numbers = scores.accessor<float, 2>();
  for (int64_t n = 0; n < rows; ++n) {
    const uint64_t kinds = 1 + random() % 40, odd = random() % 4;
    for (int64_t v = 0; v < words; ++v) {
      const auto draw = random();
      numbers[n][v] =
          -0.37F * static_cast<float>(draw % kinds) * (draw / 64 % 50 == 0 ? -1.0F : 1.0F);
      if (odd == 1 && draw / 4096 % 3 == 0)
        numbers[n][v] = std::numeric_limits<float>::quiet_NaN();
      if (odd == 2 && draw / 4096 % 32 != 0)
        numbers[n][v] = -kInfinity;
      if (odd == 3 && draw / 4096 % 97 == 0)
        numbers[n][v] = kInfinity;
    }
  }
  return scores;
}

/// Some of them name words that there are not.
std::vector<RowConstraint> made_constraints(int64_t rows, int64_t words, std::mt19937_64& random) {
  std::vector<RowConstraint> constraints(static_cast<size_t>(rows));
  const bool forcing = random() % 2 == 0;
  for (RowConstraint& row : constraints) {
    if (forcing && random() % 3 == 0)
      row.forced = static_cast<int32_t>(random() % words);
    for (uint64_t i = random() % 30; i > 0; --i)
      row.banned.push_back(static_cast<int32_t>(random() % (words + 2)) - 1);
  }
  return constraints;
}

TEST(DeviceCandidates, AreThoseOfTheHostWhateverTheConstraints) {
  std::mt19937_64 random(11);
  int none = 0, candidates = 0, equal = 0, forced = 0;
  for (int round = 0; round < testing::rounds(2000); ++round) {
    const int64_t sizes[] = {3, 4, 5, 40, 66, 67, 130, 700, 3000};
    const int64_t words = sizes[random() % std::size(sizes)];
    const int64_t rows = 1 + static_cast<int64_t>(random() % 6);
    const at::Tensor scores = made_scores(rows, words, random);
    const auto constraints = made_constraints(rows, words, random);
    const std::vector<int32_t> excluded = {
        1,
        static_cast<int32_t>(words / 2),
        static_cast<int32_t>(words - 1),
        static_cast<int32_t>(words + 4)};
    StepConstraints step;
    step.unknown_penalty = static_cast<double>(random() % 5) * 0.77 - 1.54;
    if (random() % 2 == 0)
      step.excluded = excluded;
    if (random() % 4 != 0)
      step.rows = constraints;
    for (const int64_t count : {int64_t{1}, int64_t{2}, int64_t{10}, words + 7}) {
      const auto wanted = unless_none_is_finite([&] { return chosen_here(scores, step, count); });
      const auto found = unless_none_is_finite([&] { return chosen_there(scores, step, count); });
      ASSERT_EQ(found, wanted) << "round " << round << " V " << words << " count " << count;
      none += wanted ? 0 : 1;
      for (const auto& row : wanted.value_or(Rows{}))
        for (size_t i = 0; i < row.size(); ++i) {
          candidates += 1;
          equal += i > 0 && row[i].second == row[i - 1].second ? 1 : 0;
        }
    }
    for (const RowConstraint& row : step.rows)
      forced += row.forced >= 0 ? 1 : 0;
  }
  // Or it would not be much of a test.
  EXPECT_GT(none, 50);
  EXPECT_GT(forced, 100);
  EXPECT_GT(equal, candidates / 2);
}

TEST(DeviceCandidates, SayWhyThereIsNone) {
  std::vector<std::vector<Candidate>> out;
  at::Tensor scores = at::zeros({2, 9});
  scores[1].fill_(std::numeric_limits<float>::quiet_NaN());
  EXPECT_THROW(select_rows(scores, {}, 3, out), NoProbability);
  std::vector<RowConstraint> rows(2);
  rows[0].forced = 9;
  EXPECT_THAT(
      testing::error_of([&] {
        select_rows(at::zeros({2, 9}), {.rows = rows}, 3, out);
      }),
      ::testing::HasSubstr("below the vocabulary size 9, but got 9"));
  // Finite ones, but none that may come.
  rows[0] = {.forced = -1, .banned = {2, 3, 4, 5, 6, 7, 8}};
  EXPECT_EQ(chosen_there(at::zeros({2, 9}), {.rows = rows}, 1), (Rows{{}, {{2, 0.0F}}}));
}

/// Decodes as on a device.
class ChoosingThere : public WrappedDecoder {
 public:
  using WrappedDecoder::WrappedDecoder;

  const std::vector<std::vector<Candidate>>& advance(
      std::span<const int32_t> parents,
      std::span<const int32_t> tokens,
      const StepConstraints& constraints,
      int64_t count) override {
    std::vector<at::Tensor> rows;
    const auto keep = [&](const StepRow& row) {
      rows.push_back(at::from_blob(
                         const_cast<float*>(row.log_probabilities.data()),
                         {std::ssize(row.log_probabilities)},
                         at::kFloat)
                         .clone());
    };
    WrappedDecoder::advance(parents, tokens, {.each_row = keep}, 1);
    select_rows(at::stack(rows), constraints, count, candidates_);
    return candidates_;
  }

 private:
  std::vector<std::vector<Candidate>> candidates_;
};

TEST(DeviceCandidates, MakeTheSameSearchInEveryMode) {
  constexpr int kWords = 300;
  TranslationModel model(testing::small_options(MixerKind::kLightConv), kWords, kWords, 7);
  model->eval();
  const Batch batch = testing::random_batch({{5, 0}, {2, 0}, {9, 0}}, kWords, 3);
  const std::vector<SearchInput> free = {{6, {}}, {3, {}}, {10, {}}};
  const std::vector<SearchInput> begun = {{6, {70, 3, 8}}, {3, {}}, {10, {5}}};
  const std::vector<int32_t> excluded = {3, 40, 298, 299};
  const std::vector<DecodingOptions> modes = {
      {.beam = 1, .max_length_b = 12},
      {.beam = 4, .n_best = 4, .max_length_b = 12},
      {.beam = 20, .n_best = 20, .max_length_b = 9},
      {.beam = 160, .n_best = 20, .max_length_b = 3},
      {.beam = 3, .stepwise_length_penalty = true, .max_length_b = 12, .min_length = 4},
      {.beam = 3, .max_length_b = 30, .min_length = 30, .no_repeat_ngram = 1},
      {.beam = 3, .max_length_b = 12, .no_repeat_ngram = 2},
      {.beam = 4, .max_length_b = 12, .unknown_penalty = -9.3},
      {.beam = 4, .max_length_b = 12, .unknown_penalty = 0.7}};
  for (size_t mode = 0; mode < modes.size(); ++mode)
    for (const auto& inputs : {free, begun})
      for (const auto& without : {std::vector<int32_t>{}, excluded}) {
        SCOPED_TRACE(concat("mode ", mode));
        ChoosingThere there(make_step_decoder({model}, batch));
        const auto here = make_step_decoder({model}, batch);
        const auto found = search(there, inputs, modes[mode], without);
        const auto wanted = search(*here, inputs, modes[mode], without);
        ASSERT_EQ(found.size(), wanted.size());
        for (size_t i = 0; i < found.size(); ++i) {
          ASSERT_EQ(found[i].size(), wanted[i].size());
          for (size_t n = 0; n < found[i].size(); ++n) {
            EXPECT_EQ(found[i][n].tokens, wanted[i][n].tokens);
            EXPECT_EQ(found[i][n].token_scores, wanted[i][n].token_scores);
            EXPECT_EQ(found[i][n].score, wanted[i][n].score);
          }
        }
      }
}

}  // namespace
}  // namespace seqconv::internal
