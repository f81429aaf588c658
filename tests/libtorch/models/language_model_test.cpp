#include "libtorch/models/language_model.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "libtorch/models/decoder.h"
#include "libtorch/models/output_layer.h"
#include "libtorch/nn/flat_parameters.h"
#include "support/errors.h"
#include "test_language_models.h"

namespace seqconv::internal {
namespace {

using testing::as_language_model;
using testing::language_variants;
using testing::random_batch;
using testing::Variant;

constexpr int kVocabulary = 40;

class LanguageModelTest : public ::testing::TestWithParam<Variant> {
 protected:
  LanguageModelTest() : model_(GetParam().options, kVocabulary, 7) {}

  LanguageModel model_;
};

INSTANTIATE_TEST_SUITE_P(
    Blocks, LanguageModelTest, ::testing::ValuesIn(language_variants()), testing::variant_name);

at::Tensor target_in(const Batch& batch) {
  return at::tensor(at::ArrayRef<int64_t>(batch.target_in), at::kLong)
      .view({batch.rows, batch.target_steps});
}

TEST_P(LanguageModelTest, PaddingDoesNotChangeScores) {
  const Batch together = random_batch({{1, 3}, {1, 14}, {1, 9}}, 40, 3);
  const at::Tensor scores = model_->target_log_probabilities(together);
  for (int64_t row = 0; row < 3; ++row) {
    std::vector<int32_t> target;
    for (int64_t i = 0; i + 1 < together.target_lengths[row]; ++i)
      target.push_back(together.target_out[row * together.target_steps + i]);
    const at::Tensor alone = model_->target_log_probabilities(make_batch({{}}, {target}))[0];
    EXPECT_TRUE(at::allclose(scores[row].narrow(0, 0, alone.size(0)), alone, 1e-5, 1e-5));
  }
}

TEST_P(LanguageModelTest, ThePastDoesNotSeeTheFuture) {
  Batch batch = random_batch({{1, 12}}, 40, 5);
  const at::Tensor before = model_->target_log_probabilities(batch)[0];
  batch.target_in[8] = batch.target_in[8] == 5 ? 6 : 5;
  const at::Tensor after = model_->target_log_probabilities(batch)[0];
  // A word of another band changes the shape of products, so not bit by bit.
  EXPECT_TRUE(at::allclose(before.narrow(0, 0, 8), after.narrow(0, 0, 8), 1e-6, 1e-6));
  EXPECT_FALSE(at::allclose(before.narrow(0, 8, 5), after.narrow(0, 8, 5)));
}

TEST_P(LanguageModelTest, PromptsInChunksAndStepsEqualTeacherForcing) {
  at::NoGradGuard no_grad;
  const Batch batch = random_batch({{1, 20}}, 40, 11);
  DropoutPlan evaluation;
  const at::Tensor wanted =  // [T, V]
      model_->output().log_probabilities(model_->forward(target_in(batch), evaluation)[0]);
  const std::vector<std::vector<int64_t>> partitions = {
      std::vector<int64_t>(21, 1), {21}, {4, 1, 9, 7}};
  for (const auto& pieces : partitions) {
    LanguageModelReader reader(model_);
    for (const int64_t piece : pieces) {
      const auto first = batch.target_in.begin() + reader.tokens_read();
      const at::Tensor next = reader.read({first, first + piece});
      EXPECT_TRUE(at::allclose(next, wanted[reader.tokens_read() - 1], 1e-5, 2e-5))
          << "piece of " << piece << " up to " << reader.tokens_read();
    }
  }
}

TEST_P(LanguageModelTest, ReadingInBfloat16EqualsTeacherForcing) {
  const Batch batch = random_batch({{1, 12}}, 40, 11);
  const at::Tensor wanted = model_->target_log_probabilities(batch);  // [1, T]
  model_->to(at::kBFloat16);
  const at::Tensor scores = model_->target_log_probabilities(batch);
  EXPECT_EQ(scores.scalar_type(), at::kFloat);
  EXPECT_TRUE(at::allclose(scores, wanted, 0, 0.1));
  EXPECT_FALSE(at::equal(scores, wanted));
  LanguageModelReader reader(model_);
  for (int64_t step = 0; step < batch.target_steps; ++step) {
    const at::Tensor next = reader.read({batch.target_in[step]});
    EXPECT_EQ(next.scalar_type(), at::kFloat);
    EXPECT_NEAR(next[batch.target_out[step]].item<float>(), wanted[0][step].item<float>(), 0.1);
  }
}

TEST_P(LanguageModelTest, LossIsMinusTheLogProbabilities) {
  const Batch batch = random_batch({{1, 3}, {1, 14}}, 40, 9);
  DropoutPlan evaluation;
  const auto sums = model_->loss(batch, {}, evaluation);
  const double wanted = -model_->target_log_probabilities(batch).sum().item<double>();
  EXPECT_NEAR(sums.loss.item<double>(), wanted, 1e-4 * wanted);
  EXPECT_NEAR(sums.nll.item<double>(), wanted, 1e-4 * wanted);
}

TEST_P(LanguageModelTest, EveryParameterGetsAGradient) {
  const FlatParameters parameters(*model_);
  const Batch batch = random_batch({{1, 30}, {1, 40}, {1, 35}}, 40, 10);
  DropoutPlan evaluation;
  model_->loss(batch, {}, evaluation).loss.backward();
  for (const auto& item : model_->named_parameters())
    EXPECT_TRUE(item.value().grad().ne(0).any().item<bool>()) << item.key();
}

TEST(LanguageModel, ReadsLongTextsInPieces) {
  // More than it reads at a time, and in one go.
  ModelOptions options = as_language_model(testing::small_options(MixerKind::kLightConv));
  const LanguageModel model(options, kVocabulary, 3);
  const Batch batch = random_batch({{1, 1300}}, 40, 2);
  at::NoGradGuard no_grad;
  DropoutPlan evaluation;
  const at::Tensor hidden = model->forward(target_in(batch), evaluation)[0];
  LanguageModelReader reader(model);
  EXPECT_TRUE(at::allclose(
      reader.read(batch.target_in), model->output().log_probabilities(hidden)[1300], 1e-5, 2e-5));
}

TEST(LanguageModel, GoesOnBeyondEveryTableOfPositions) {
  // Positions are computed in windows; the text's end must not depend on where
  // they begin.
  const LanguageModel model(
      as_language_model(testing::small_options(MixerKind::kTalk)), kVocabulary, 3);
  const Batch batch = random_batch({{1, 6000}}, 40, 2);
  at::NoGradGuard no_grad;
  DropoutPlan evaluation;
  const at::Tensor wanted = model->output().log_probabilities(
      model->forward(target_in(batch), evaluation)[0].narrow(0, 5990, 11));
  LanguageModelReader reader(model);
  const auto begin = batch.target_in.begin();
  reader.read({begin, begin + 5990});
  for (int64_t i = 0; i <= 10; ++i)
    EXPECT_TRUE(at::allclose(reader.read({batch.target_in[5990 + i]}), wanted[i], 1e-5, 2e-5));
}

TEST(LanguageModel, LearnedPositionsEnd) {
  ModelOptions options = as_language_model(testing::small_options(MixerKind::kLightConv));
  options.positions = PositionKind::kLearned;
  options.max_positions = 8;
  const LanguageModel model(options, kVocabulary, 3);
  EXPECT_EQ(model->max_tokens(), 8);
  LanguageModelReader reader(model);
  reader.read({2, 5, 6, 7, 8, 9, 10, 11});
  EXPECT_THROW(reader.read({12}), c10::Error);
  options.decoder.max_positions = 9;
  EXPECT_EQ(LanguageModel(options, kVocabulary, 3)->max_tokens(), 9);
  options.decoder.positions = SidePositions::kNone;
  EXPECT_GT(LanguageModel(options, kVocabulary, 3)->max_tokens(), 1 << 30);
}

TEST(LanguageModel, ReaderNamesBadTokens) {
  const LanguageModel model(
      as_language_model(testing::small_options(MixerKind::kLightConv)), kVocabulary, 3);
  LanguageModelReader reader(model);
  EXPECT_EQ(
      testing::error_of<Error>([&] { reader.read({40}); }),
      "tokens must be in [0, 40), but got 40");
  EXPECT_EQ(
      testing::error_of<Error>([&] { reader.read({}); }), "a language model must be given a token");
}

TEST(LanguageModelOptions, ContradictionsNameTheirKeys) {
  const ModelOptions good = as_language_model(testing::small_options(MixerKind::kDynamicConv));
  const auto expect = [&](auto change, const std::string& message) {
    ModelOptions options = good;
    change(options);
    EXPECT_EQ(
        testing::error_of<UsageError>([&] { options.validate("model", Task::kLanguageModel); }),
        message);
  };
  expect(
      [](auto& o) { o.encoder.layers = 3; },
      "model.encoder is given, but a language model has a decoder only; set model.decoder");
  expect(
      [](auto& o) { o.norm = NormPlacement::kPost; },
      "model.norm must be \"pre\" in a language model, but got \"post\"");
  expect(
      [](auto& o) { o.decoder.norm = SideNorm::kPost; },
      "model.decoder.norm must be \"pre\" in a language model, but got \"post\"");
  expect(
      [](auto& o) {
        o.tie = Tying::kNone;
        o.adaptive.softmax_cutoffs = {20, 10};
      },
      "model.adaptive.softmax_cutoffs must be ascending and at least 4 (the special symbols), but "
      "got [20,10]");
  expect(
      [](auto& o) {
        o.tie = Tying::kNone;
        o.adaptive.softmax_cutoffs = {10, 20, 30};
      },
      "model.adaptive.softmax_factor must be at least 1 and leave the last band a width of 1, but "
      "4 divides 24 by itself 3 times");
  expect(
      [](auto& o) { o.adaptive.softmax_cutoffs = {10}; },
      "model.tie = \"all\" shares the words of input and softmax, which needs equal cutoffs and "
      "factors, but got [] / 4 and [10] / 4; set model.tie = \"none\" for matrices of their own");
  expect(
      [](auto& o) { o.adaptive.tie_projections = true; },
      "model.adaptive.tie_projections = true needs an adaptive input and softmax with model.tie = "
      "\"decoder\"");
  expect(
      [](auto& o) { o.adaptive.input_dim = 8; },
      "model.adaptive.input_dim is given, but model.adaptive.input_cutoffs is empty: the width of "
      "a single table is model.input_dim");
  expect(
      [](auto& o) {
        o.tie = Tying::kNone;
        o.adaptive.input_cutoffs = {10};
        o.input_dim = 8;
      },
      "model.input_dim is the width of a single table, but model.adaptive.input_cutoffs is given: "
      "that of the first band is model.adaptive.input_dim");
  expect(
      [](auto& o) { o.output_dim = 36; },
      "model.tie = \"all\" makes the embedding the output matrix, which needs model.input_dim and "
      "model.output_dim to be equal, but got 24 and 36; set model.tie = \"none\" for matrices of "
      "their own");
  expect(
      [](auto& o) {
        o.adaptive.input_cutoffs = o.adaptive.softmax_cutoffs = {10};
        o.output_dim = 36;
      },
      "model.tie = \"all\" makes words of the adaptive input those of the softmax, which needs "
      "model.output_dim = 0, but got 36; set model.tie = \"none\" for matrices of their own");
}

TEST(LanguageModelOptions, CutoffsMustFitTheVocabulary) {
  ModelOptions options = as_language_model(testing::small_options(MixerKind::kDynamicConv));
  options.tie = Tying::kNone;
  options.adaptive.softmax_cutoffs = {10, 41};
  EXPECT_EQ(
      testing::error_of<UsageError>([&] { LanguageModel(options, kVocabulary); }),
      "model.adaptive.softmax_cutoffs must be at most the vocabulary of 40 symbols, but got 41");
}

TEST(LanguageModelOptions, TranslationHasNoBandsOfInput) {
  ModelOptions options = testing::small_options(MixerKind::kDynamicConv);
  const auto error = [&] {
    return testing::error_of<UsageError>([&] { options.validate("model"); });
  };
  options.adaptive.softmax_cutoffs = {10};
  options.tie = Tying::kDecoder;
  EXPECT_EQ(
      error(),
      "model.tie must be \"none\" where a translation model has an adaptive softmax, whose words "
      "are its own, but got \"decoder\"");
  options.tie = Tying::kNone;
  EXPECT_NO_THROW(options.validate("model"));
  options.adaptive.input_cutoffs = {10};
  EXPECT_EQ(
      error(),
      "model.adaptive.input_cutoffs is for language models (task = \"language_model\"), but the "
      "task is translation");
  options.adaptive = {.softmax_dropout = 0.1};
  EXPECT_EQ(error(), "model.adaptive.softmax_dropout has no effect without softmax_cutoffs");
}

}  // namespace
}  // namespace seqconv::internal
