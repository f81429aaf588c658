#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "golden_checks.h"
#include "libtorch/models/output_layer.h"
#include "search/search.h"

// Checkpoints of the reference code, imported, against everything that was
// recorded with them. The bounds are those of the folders' README files.
namespace seqconv::internal {
namespace {

using testing::expect_hypothesis;
using testing::expect_near;
using testing::golden_folders;
using testing::GoldenKind;
using testing::GoldenModel;
using testing::kLoss;
using testing::kOutputs;
using testing::row_of;

constexpr size_t kPad = 1;
constexpr int32_t kEnd = 2;

class GoldenModels : public ::testing::TestWithParam<std::filesystem::path> {
 protected:
  GoldenModels() : golden_(GetParam()) {}

  /// Log-probabilities [1, T, V] and, of a translation model, encoder states.
  std::pair<at::Tensor, at::Tensor> run(int64_t row) const {
    const at::NoGradGuard no_grad;
    DropoutPlan plan;
    const at::Tensor input = golden_.tokens("prev_output", row);
    if (!golden_.translates()) {
      const LanguageModel model = golden_.language_model();
      return {model->output().log_probabilities(model->forward(input, plan)[0]), {}};
    }
    const TranslationModel model = golden_.translation_model();
    const at::Tensor source = golden_.tokens("src", row);
    const EncoderOutput memory =
        model->encode(source, at::tensor(at::ArrayRef<int64_t>(source.size(1)), at::kLong), plan);
    return {
        model->output().log_probabilities(model->decode(memory, input, plan)[0]), memory.states};
  }

  GoldenModel golden_;
};

class GoldenTranslationModels : public GoldenModels {};
class GoldenLanguageModels : public GoldenModels {};

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenModels);
INSTANTIATE_TEST_SUITE_P(
    Folders,
    GoldenModels,
    ::testing::ValuesIn(testing::golden_model_folders()),
    testing::golden_model_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenTranslationModels);
INSTANTIATE_TEST_SUITE_P(
    Folders,
    GoldenTranslationModels,
    ::testing::ValuesIn(golden_folders(GoldenKind::kTranslation)),
    testing::golden_model_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenLanguageModels);
INSTANTIATE_TEST_SUITE_P(
    Folders,
    GoldenLanguageModels,
    ::testing::ValuesIn(golden_folders(GoldenKind::kLanguage)),
    testing::golden_model_name);

// Without them the suites above would be empty, and green.
TEST(GoldenModelFolders, AreThere) {
  SEQCONV_REQUIRE_GOLDEN(golden_folders(GoldenKind::kTranslation));
  SEQCONV_REQUIRE_GOLDEN(golden_folders(GoldenKind::kLanguage));
  SEQCONV_REQUIRE_GOLDEN(golden_folders(GoldenKind::kText));
  SEQCONV_REQUIRE_GOLDEN(testing::golden_adaptive_folders());
}

TEST_P(GoldenModels, OutputsAndLogProbabilities) {
  double loss = 0;
  for (int64_t row = 0; row < golden_.rows(); ++row) {
    SCOPED_TRACE(concat("row ", row));
    const auto [found, states] = run(row);
    const at::Tensor target = golden_.tokens("tgt", row)[0];
    const int64_t steps = target.size(0);
    const at::Tensor all = found.view({1, steps, -1});
    expect_near(all, row_of(golden_.recorded("logprobs"), row, steps), kOutputs);
    const at::Tensor chosen = all[0].gather(1, target.unsqueeze(1)).squeeze(1).unsqueeze(0);
    expect_near(chosen, row_of(golden_.recorded("target_logprobs"), row, steps), kOutputs);
    loss -= chosen.to(at::kDouble).sum().item<double>();
    if (golden_.translates())
      expect_near(states, row_of(golden_.recorded("encoder_out"), row, states.size(1)), kOutputs);
  }
  const Json& outputs = golden_.outputs();
  const double wanted = outputs.at("loss_nats_sum");
  EXPECT_NEAR(loss, wanted, kLoss * wanted);
  const double tokens = outputs.at("ntokens");
  const double bits = loss / std::log(2.0);
  const double bits_sum = outputs.at("loss_base2_sum");
  const double bits_mean = outputs.at("loss_base2_per_token");
  const double perplexity = outputs.at("perplexity");
  EXPECT_NEAR(bits, bits_sum, kLoss * bits_sum);
  EXPECT_NEAR(bits / tokens, bits_mean, kLoss * bits_mean);
  EXPECT_NEAR(std::exp2(bits / tokens), perplexity, kLoss * perplexity);
}

TEST_P(GoldenModels, EveryLayer) {
  int rows = 0;
  for (int64_t row = 0; row < golden_.rows(); ++row) {
    if (!golden_.has(concat("dec.embed.row", row)))
      continue;
    ++rows;
    if (golden_.translates())
      testing::walk_layers(golden_, *golden_.translation_model(), row);
    else
      testing::walk_layers(golden_, *golden_.language_model(), row);
  }
  EXPECT_GE(rows, 1);
}

TEST_P(GoldenTranslationModels, BeamSearch) {
  const Json& rows = golden_.outputs().at("rows");
  ASSERT_EQ(static_cast<int64_t>(rows.size()), golden_.rows());
  for (const auto& backend : golden_.translation_backends())
    for (const auto& [key, beam] : {std::pair<const char*, int64_t>{"beam5", 5}, {"greedy", 1}}) {
      DecodingOptions options{.beam = beam, .n_best = beam, .max_length_b = 60};
      for (int64_t row = 0; row < golden_.rows(); ++row) {
        SCOPED_TRACE(concat(key, ", row ", row));
        const auto source = golden_.ids("src", row);
        const auto decoder = backend->start({source});
        const auto found = search(*decoder, {{std::ssize(source) + 1, {}}}, options);
        Json wanted = rows.at(static_cast<size_t>(row)).at(key);
        if (wanted.is_object())  // a single one
          wanted = Json::array({wanted});
        ASSERT_EQ(found.at(0).size(), wanted.size());
        for (size_t i = 0; i < wanted.size(); ++i)
          expect_hypothesis(found[0][i], wanted[i]);
      }
    }
}

TEST_P(GoldenTranslationModels, ScoresOfBackends) {
  std::vector<std::vector<int32_t>> sources, targets;
  std::vector<double> wanted;
  for (int64_t row = 0; row < golden_.rows(); ++row) {
    sources.push_back(golden_.ids("src", row));
    targets.push_back(golden_.ids("tgt", row));
    wanted.push_back(
        row_of(golden_.recorded("target_logprobs"), row, std::ssize(targets.back()) + 1)
            .to(at::kDouble)
            .sum()
            .item<double>());
  }
  for (const auto& backend : golden_.translation_backends()) {
    const std::vector<double> found = backend->score(sources, targets);
    for (size_t row = 0; row < wanted.size(); ++row)
      EXPECT_NEAR(found.at(row), wanted[row], kOutputs) << "row " << row;
  }
}

TEST_P(GoldenLanguageModels, ScoresOfBackends) {
  for (const auto& backend : golden_.language_backends())
    for (int64_t row = 0; row < golden_.rows(); ++row) {
      std::vector<int32_t> piece = golden_.ids("tgt", row);
      piece.insert(piece.begin(), kEnd);
      piece.push_back(kEnd);
      const std::vector<float> found = backend->score({piece}).at(0);
      const at::Tensor wanted =
          row_of(golden_.recorded("target_logprobs"), row, std::ssize(piece) - 1).squeeze(0);
      for (size_t i = 0; i < found.size(); ++i)
        EXPECT_NEAR(found[i], wanted[static_cast<int64_t>(i)].item<double>(), kOutputs)
            << "row " << row << ", token " << i;
    }
}

TEST_P(GoldenLanguageModels, Continuations) {
  for (const auto& backend : golden_.language_backends()) {
    int tokens_seen = 0;
    for (const Json& wanted : golden_.outputs().at("greedy")) {
      const auto reader = backend->start();
      auto prompt = wanted.at("prompt").get<std::vector<int32_t>>();
      prompt.insert(prompt.begin(), kEnd);
      std::span<const float> next = reader->read(prompt).log_probabilities();
      const auto tokens = wanted.at("tokens").get<std::vector<int32_t>>();
      const auto scores = wanted.at("logprobs").get<std::vector<double>>();
      for (size_t i = 0; i < tokens.size(); ++i) {
        std::vector<float> allowed(next.begin(), next.end());
        allowed[kPad] = allowed[kEnd] = -INFINITY;
        const auto best = static_cast<int32_t>(
            std::max_element(allowed.begin(), allowed.end()) - allowed.begin());
        ASSERT_EQ(best, tokens[i]) << "token " << i;
        EXPECT_NEAR(allowed[static_cast<size_t>(best)], scores[i], kOutputs);
        next = reader->read({&best, 1}).log_probabilities();
        ++tokens_seen;
      }
    }
    EXPECT_GT(tokens_seen, 0);
  }
}

}  // namespace
}  // namespace seqconv::internal
