#include "libtorch/models/translation_model.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "base/options.h"
#include "libtorch/models/decoder.h"
#include "libtorch/models/output_layer.h"
#include "libtorch/nn/average_attention.h"
#include "libtorch/nn/flat_parameters.h"
#include "support/product_types.h"
#include "test_models.h"

namespace seqconv::internal {
namespace {

using testing::random_batch;
using testing::small_options;
using testing::Variant;

constexpr int kTargetWords = 40;

class TranslationModelTest : public ::testing::TestWithParam<Variant> {
 protected:
  TranslationModelTest() : model_(GetParam().options, kTargetWords, kWords, 7) {}

  TranslationModel model_;
};

INSTANTIATE_TEST_SUITE_P(
    Blocks,
    TranslationModelTest,
    ::testing::ValuesIn(testing::all_variants()),
    testing::variant_name);

/// Log-probabilities of row `row` of a batch, padding cut off.
at::Tensor row_scores(const TranslationModel& model, const Batch& batch, int64_t row) {
  return model->target_log_probabilities(batch)[row].narrow(0, 0, batch.target_lengths[row]);
}

TEST_P(TranslationModelTest, PaddingDoesNotChangeScores) {
  const Batch together = random_batch({{5, 3}, {11, 9}, {1, 14}}, 40, 3);
  for (int64_t row = 0; row < 3; ++row) {
    std::vector<int32_t> source, target;
    for (int64_t i = 0; i + 1 < together.source_lengths[row]; ++i)
      source.push_back(together.source[row * together.source_steps + i]);
    for (int64_t i = 0; i + 1 < together.target_lengths[row]; ++i)
      target.push_back(together.target_out[row * together.target_steps + i]);
    const Batch alone = make_batch({source}, {target});
    EXPECT_TRUE(
        at::allclose(row_scores(model_, together, row), row_scores(model_, alone, 0), 1e-5, 1e-5));
  }
}

TEST_P(TranslationModelTest, PastTargetsDoNotSeeFutureOnes) {
  Batch batch = random_batch({{6, 12}}, 40, 5);
  const at::Tensor before = row_scores(model_, batch, 0);
  batch.target_in[8] = batch.target_in[8] == 5 ? 6 : 5;
  const at::Tensor after = row_scores(model_, batch, 0);
  EXPECT_TRUE(at::equal(before.narrow(0, 0, 8), after.narrow(0, 0, 8)));
  EXPECT_FALSE(at::allclose(before.narrow(0, 8, 5), after.narrow(0, 8, 5)));
}

TEST_P(TranslationModelTest, StepsAndChunksEqualTeacherForcing) {
  at::NoGradGuard no_grad;
  const Batch batch = random_batch({{7, 20}, {7, 20}}, 40, 11);
  const at::Tensor wanted = model_->target_log_probabilities(batch);
  const at::Tensor source = at::tensor(at::ArrayRef<int64_t>(batch.source), at::kLong).view({2, 8});
  const at::Tensor tokens =
      at::tensor(at::ArrayRef<int64_t>(batch.target_in), at::kLong).view({2, 21});
  const at::Tensor target =
      at::tensor(at::ArrayRef<int64_t>(batch.target_out), at::kLong).view({2, 21});
  DropoutPlan evaluation;
  const EncoderOutput memory =
      model_->encode(source, at::tensor(at::ArrayRef<int64_t>(batch.source_lengths)), evaluation);
  const auto memories = model_->decoder().memories(memory.states, {});
  const std::vector<std::vector<int64_t>> partitions = {
      std::vector<int64_t>(21, 1), {21}, {4, 1, 9, 7}, {16, 5}};
  for (const auto& chunks : partitions) {
    DecoderState state = model_->decoder().initial_state(2);
    int64_t start = 0;
    for (int64_t chunk : chunks) {
      const at::Tensor hidden =
          model_->decoder().step(tokens.narrow(1, start, chunk), memories, state);
      const at::Tensor got =
          model_->output()
              .target_log_probabilities(
                  hidden.reshape({-1, 24}), target.narrow(1, start, chunk).reshape(-1))
              .view({2, chunk});
      EXPECT_TRUE(at::allclose(got, wanted.narrow(1, start, chunk), 1e-5, 2e-5))
          << "chunk of " << chunk << " at " << start;
      start += chunk;
    }
  }
}

TEST_P(TranslationModelTest, StepDecoderScoresEqualTeacherForcing) {
  const Batch batch = random_batch({{7, 16}, {4, 16}, {12, 16}}, 40, 13);
  const at::Tensor wanted = model_->target_log_probabilities(batch);
  const auto decoder = make_step_decoder({model_}, batch);
  // Rows are reversed at every step and doubled now and then.
  std::vector<int32_t> sentence_of_row = {0, 1, 2};
  for (int64_t step = 0; step < batch.target_steps; ++step) {
    std::vector<int32_t> parents, tokens, sentences;
    std::vector<RowConstraint> constraints;
    const auto rows = static_cast<int32_t>(sentence_of_row.size());
    for (int32_t row = rows - 1; row >= 0; --row) {
      const int copies = step == 3 ? 2 : 1;
      for (int copy = 0; copy < copies; ++copy) {
        const int32_t sentence = sentence_of_row[row];
        const int64_t at = sentence * batch.target_steps + step;
        parents.push_back(row);
        sentences.push_back(sentence);
        tokens.push_back(static_cast<int32_t>(batch.target_in[at]));
        constraints.push_back({.forced = static_cast<int32_t>(batch.target_out[at])});
      }
    }
    const auto& found = decoder->advance(parents, tokens, {.rows = constraints}, /*count=*/4);
    sentence_of_row = sentences;
    for (size_t row = 0; row < found.size(); ++row) {
      ASSERT_EQ(found[row].size(), 1u);
      EXPECT_NEAR(found[row][0].score, wanted[sentences[row]][step].item<float>(), 2e-5);
    }
  }
}

// As TorchBackends has it: of all that the products read, nothing is float32.
TEST_P(TranslationModelTest, StepsInBfloat16EqualTeacherForcing) {
  const Batch batch = random_batch({{7, 9}, {4, 9}}, 40, 13);
  const at::Tensor wanted = model_->target_log_probabilities(batch);
  model_->to(at::kBFloat16);
  at::Tensor scores;
  at::Tensor stepped = at::zeros_like(wanted);  // [B, T]
  const auto products = testing::product_types([&] {
    scores = model_->target_log_probabilities(batch);
    const auto decoder = make_step_decoder({model_}, batch);
    for (int64_t step = 0; step < batch.target_steps; ++step) {
      std::vector<int32_t> tokens;
      std::vector<RowConstraint> forced;
      for (const int64_t row : {0, 1}) {
        const int64_t at = row * batch.target_steps + step;
        tokens.push_back(static_cast<int32_t>(batch.target_in[at]));
        forced.push_back({.forced = static_cast<int32_t>(batch.target_out[at])});
      }
      const auto& found = decoder->advance(std::vector{0, 1}, tokens, {.rows = forced}, 1);
      for (const int64_t row : {0, 1})
        stepped[row][step] = found[row].at(0).score;
    }
  });
  EXPECT_FALSE(products.empty());
  for (const std::string& product : products)
    EXPECT_EQ(product.find(" Float"), std::string::npos) << product;
  EXPECT_EQ(scores.scalar_type(), at::kFloat);
  const auto farthest = [&](const at::Tensor& got) {
    return (got - wanted).abs().max().item<double>();
  };
  EXPECT_LT(farthest(scores), 0.1);
  EXPECT_LT(farthest(stepped), 0.1);
  EXPECT_GT(farthest(scores), 0);
}

TEST_P(TranslationModelTest, EnsembleIsTheLogOfTheMeanProbability) {
  const Batch batch = random_batch({{7, 3}}, 40, 17);
  TranslationModel other(GetParam().options, kTargetWords, kWords, 8);
  const auto first = [&](const std::vector<TranslationModel>& models) {
    const std::vector<int32_t> parents = {0}, tokens = {2};
    std::vector<double> scores(kTargetWords);
    const auto decoder = make_step_decoder(models, batch);
    for (const Candidate& c : decoder->advance(parents, tokens, {}, kTargetWords)[0])
      scores[c.token] = c.score;
    return scores;
  };
  const auto a = first({model_}), b = first({other}), both = first({model_, other});
  for (int token = 2; token < kTargetWords; ++token) {
    EXPECT_NEAR(both[token], std::log((std::exp(a[token]) + std::exp(b[token])) / 2), 1e-5);
  }
}

TEST_P(TranslationModelTest, SameSeedGivesSameDropoutAndOthersDoNot) {
  ModelOptions options = GetParam().options;
  options.dropout = options.input_dropout = options.weight_dropout = 0.3;
  options.attention_dropout = options.activation_dropout = 0.2;
  TranslationModel model(options, kTargetWords, kWords, 7);
  const Batch batch = random_batch({{5, 3}, {11, 9}}, 40, 3);
  const auto loss = [&](const RandomKey& key) {
    DropoutPlan plan(key);
    return model->loss(batch, {}, plan).loss.item<float>();
  };
  EXPECT_EQ(loss({1, 5, 0}), loss({1, 5, 0}));
  EXPECT_NE(loss({1, 5, 0}), loss({1, 6, 0}));
  EXPECT_NE(loss({1, 5, 0}), loss({1, 5, 1}));
  EXPECT_NE(loss({1, 5, 0}), loss({2, 5, 0}));
}

TEST_P(TranslationModelTest, PaddingDoesNotChangeGradients) {
  // Two sentences in one batch, against the sum of each alone.
  const auto gradient = [&](const std::vector<Batch>& batches) {
    TranslationModel model(GetParam().options, kTargetWords, kWords, 7);
    FlatParameters flat(*model);
    for (const Batch& batch : batches) {
      DropoutPlan plan;
      model->loss(batch, {{.smoothing = 0.1}}, plan).loss.backward();
    }
    return flat.gradients().clone();
  };
  const Batch together = make_batch({{5, 6, 7, 8, 9, 10}, {11, 12}}, {{4}, {5, 6, 7, 8}});
  const Batch one = make_batch({{5, 6, 7, 8, 9, 10}}, {{4}});
  const Batch two = make_batch({{11, 12}}, {{5, 6, 7, 8}});
  const at::Tensor wanted = gradient({one, two});
  const at::Tensor got = gradient({together});
  EXPECT_LT((got - wanted).abs().max().item<float>(), 1e-4 * wanted.abs().max().item<float>());
}

TEST_P(TranslationModelTest, DirectionalDerivativeMatchesFiniteDifferences) {
  TranslationModel model(GetParam().options, kTargetWords, kWords, 7);
  FlatParameters flat(*model);
  const Batch batch = random_batch({{5, 6}, {8, 4}}, 40, 3);
  const auto loss = [&] {
    DropoutPlan plan;
    return model->loss(batch, {{.smoothing = 0.1}}, plan).loss;
  };
  loss().backward();
  const at::Tensor direction = flat.gradients() / flat.gradients().norm();
  const double wanted = flat.gradients().norm().item<double>();
  at::NoGradGuard no_grad;
  const double h = 1e-3;
  flat.values().add_(direction, h);
  const double above = loss().item<double>();
  flat.values().add_(direction, -2 * h);
  const double below = loss().item<double>();
  EXPECT_NEAR((above - below) / (2 * h), wanted, 0.01 * wanted);
}

TEST_P(TranslationModelTest, EveryParameterLearnsInOneStep) {
  ModelOptions options = GetParam().options;
  options.dropout = options.input_dropout = options.weight_dropout = 0.1;
  TranslationModel model(options, kTargetWords, kWords, 7);
  const Batch batch = random_batch({{5, 16}, {18, 4}}, 40, 3);
  const auto loss = [&] {
    DropoutPlan plan({1, 1, 0});
    return model->loss(batch, {{.smoothing = 0.1}}, plan).loss;
  };
  const at::Tensor before = loss();
  before.backward();
  double norm = 0;
  for (const auto& item : model->named_parameters()) {
    const at::Tensor gradient = item.value().grad();
    ASSERT_TRUE(gradient.defined()) << item.key();
    EXPECT_TRUE(gradient.isfinite().all().item<bool>()) << item.key();
    EXPECT_GT(gradient.abs().max().item<float>(), 0) << item.key();
    norm += gradient.square().sum().item<double>();
  }
  at::NoGradGuard no_grad;
  for (at::Tensor parameter : model->parameters())
    parameter.sub_(parameter.grad(), 0.02 / std::sqrt(norm));
  EXPECT_LT(loss().item<float>(), before.item<float>());
}

TEST_P(TranslationModelTest, OptionsComeBackFromTheirTable) {
  const Json table = write_options(GetParam().options);
  ModelOptions back;
  read_options(table, "model", back);
  EXPECT_NO_THROW(back.validate("model"));
  EXPECT_EQ(write_options(back), table);
  EXPECT_EQ(TranslationModel(back, 40, 40, 7)->parameters().size(), model_->parameters().size());
}

TEST(TranslationModelTying, TiedTablesAreOneParameter) {
  ModelOptions options = small_options(MixerKind::kLightConv);
  const auto size = [&](Tying tie) {
    options.tie = tie;
    TranslationModelImpl model(options, 40, 40);
    int64_t count = 0;
    for (const at::Tensor& parameter : model.parameters())
      count += parameter.numel();
    return count;
  };
  EXPECT_EQ(size(Tying::kDecoder) - size(Tying::kAll), 40 * 24);
  EXPECT_EQ(size(Tying::kNone) - size(Tying::kAll), 2 * 40 * 24);
  options.tie = Tying::kAll;
  EXPECT_THROW(TranslationModelImpl(options, 40, 48), UsageError);
}

TEST(TranslationModelNorms, PreNormModelsHaveAFinalNorm) {
  ModelOptions options = small_options(MixerKind::kDynamicConv);
  options.norm = NormPlacement::kPre;
  TranslationModel model(options, 40, 40, 7);
  const auto names = model->named_parameters();
  EXPECT_TRUE(names.contains("encoder.final_norm.weight"));
  EXPECT_TRUE(names.contains("decoder.final_norm.bias"));
  const Batch batch = random_batch({{5, 6}}, 40, 3);
  EXPECT_TRUE(model->target_log_probabilities(batch).isfinite().all().item<bool>());
}

TEST(TranslationModelNorms, EachSideMayHaveItsOwnPlacement) {
  ModelOptions options = small_options(MixerKind::kDynamicConv);
  const auto final_norms = [&](SideNorm encoder, SideNorm decoder) {
    options.encoder.norm = encoder;
    options.decoder.norm = decoder;
    const auto names = TranslationModel(options, 40, 40, 7)->named_parameters();
    return std::pair(
        names.contains("encoder.final_norm.weight"), names.contains("decoder.final_norm.weight"));
  };
  using Pair = std::pair<bool, bool>;
  EXPECT_EQ(final_norms(SideNorm::kPre, SideNorm::kAuto), Pair(true, false));
  EXPECT_EQ(final_norms(SideNorm::kPost, SideNorm::kPre), Pair(false, true));
  options.norm = NormPlacement::kPre;
  EXPECT_EQ(final_norms(SideNorm::kAuto, SideNorm::kPost), Pair(true, false));
}

TEST(TranslationModelConvDim, AStateIsAsWideAsItsConvolution) {
  ModelOptions options = small_options(MixerKind::kDynamicConv);
  options.decoder.block = {MixerKind::kDynamicConv, MixerKind::kTalk};
  options.decoder.max_offsets = {0, 9};
  options.decoder.conv_dim = {16, 40};
  TranslationModel model(options, 40, 40, 7);
  const DecoderState state = model->decoder().initial_state(3);
  const auto width = [&](int layer) {
    return state.layers[layer].mixer.as<ConvState>().window.sizes();
  };
  EXPECT_EQ(width(0), (at::IntArrayRef{3, 2, 16}));
  EXPECT_EQ(width(1), (at::IntArrayRef{3, 9, 40}));
}

TEST(TranslationModelPositions, LearnedPositionsEndWithAClearError) {
  ModelOptions options = small_options(MixerKind::kLightConv);
  options.positions = PositionKind::kLearned;
  options.max_positions = 8;
  TranslationModel model(options, 40, 40, 7);
  EXPECT_NO_THROW(model->target_log_probabilities(random_batch({{7, 7}}, 40, 3)));
  try {
    model->target_log_probabilities(random_batch({{8, 3}}, 40, 3));
    FAIL();
  } catch (const c10::Error& error) {
    EXPECT_NE(
        std::string(error.what_without_backtrace())
            .find("max_positions = 8 tokens, but got a sequence of 9"),
        std::string::npos);
  }
}

TEST(TranslationModelPositions, EachSideHasItsOwnAndItsOwnEnd) {
  ModelOptions options = small_options(MixerKind::kLightConv);
  options.encoder.positions = SidePositions::kLearned;
  options.encoder.max_positions = 8;
  const auto fits = [&](int source, int target) {
    TranslationModel model(options, 40, 40, 7);
    try {
      model->target_log_probabilities(random_batch({{source, target}}, 40, 3));
    } catch (const c10::Error&) {
      return false;
    }
    return true;
  };
  EXPECT_TRUE(fits(7, 30));
  EXPECT_FALSE(fits(8, 3));
  options.decoder.positions = SidePositions::kLearned;
  options.max_positions = 12;
  EXPECT_TRUE(fits(7, 11));
  EXPECT_FALSE(fits(7, 12));
  options.encoder.positions = SidePositions::kNone;
  EXPECT_TRUE(fits(30, 11));
}

TEST(TranslationModelPositions, WithoutThemOnlyNeighboursTellWordsApart) {
  ModelOptions options = small_options(MixerKind::kLightConv);
  const at::Tensor source = at::full({1, 60}, 5, at::kLong);
  const auto spread = [&](PositionKind kind) {
    options.positions = kind;
    TranslationModel model(options, 40, 40, 7);
    DropoutPlan plan;
    // Beyond the reach of both ends, every position sees the same words.
    const at::Tensor states = model->encode(source, {}, plan).states.narrow(1, 20, 20);
    return (states - states.narrow(1, 0, 1)).abs().max().item<float>();
  };
  EXPECT_LT(spread(PositionKind::kNone), 1e-5);
  EXPECT_GT(spread(PositionKind::kSinusoidal), 0.1);
}

TEST(TranslationModelAverage, TheEncoderAveragesThePastTooAsInThePaper) {
  // "AAN decoder + AAN encoder" of table 3: the same operator on both sides.
  TranslationModel model(
      small_options(MixerKind::kAverageAttention), kTargetWords, kTargetWords, 7);
  const at::Tensor source = at::randint(4, 40, {1, 9}, at::kLong);
  at::Tensor other = source.clone();
  other[0][6] = source[0][6].item<int64_t>() == 5 ? 6 : 5;
  DropoutPlan plan;
  const at::Tensor a = model->encode(source, {}, plan).states;
  const at::Tensor b = model->encode(other, {}, plan).states;
  EXPECT_TRUE(at::allclose(a.narrow(1, 0, 6), b.narrow(1, 0, 6), 1e-5, 1e-6));
  EXPECT_FALSE(at::allclose(a.narrow(1, 7, 2), b.narrow(1, 7, 2)));
}

TEST(TranslationModelAverage, AStateHasTheSameSizeAfterEveryStep) {
  TranslationModel model(
      small_options(MixerKind::kAverageAttention), kTargetWords, kTargetWords, 7);
  at::NoGradGuard no_grad;
  DropoutPlan plan;
  const at::Tensor source = at::randint(4, 40, {1, 9}, at::kLong);
  const auto memories = model->decoder().memories(model->encode(source, {}, plan).states, {});
  DecoderState state = model->decoder().initial_state(1);
  for (int step = 0; step < 20; ++step) {
    model->decoder().step(at::full({1, 1}, 5, at::kLong), memories, state);
    for (const LayerState& layer : state.layers)
      EXPECT_EQ(layer.mixer.as<AverageState>().sums.sizes(), (at::IntArrayRef{1, 24}));
  }
}

TEST(TranslationModelQuery, TheBlockInputPredictsOtherKernels) {
  ModelOptions options = small_options(MixerKind::kDynamicConv);
  const Batch batch = random_batch({{5, 6}}, 40, 3);
  const auto scores = [&] {
    return TranslationModel(options, 40, 40, 7)->target_log_probabilities(batch);
  };
  const at::Tensor own = scores();
  options.encoder.query = options.decoder.query = {QuerySource::kBlockInput};
  EXPECT_FALSE(at::allclose(own, scores()));
}

TEST(TranslationModelMixture, LayersMayHaveDifferentBlocks) {
  ModelOptions options = small_options(MixerKind::kLightConv);
  for (StackOptions* stack : {&options.encoder, &options.decoder}) {
    stack->layers = 3;
    stack->block = {MixerKind::kLightConv, MixerKind::kTalk, MixerKind::kDynamicConv};
    stack->kernel_sizes = {3, 0, 5};
    stack->max_offsets = {0, 4, 0};
  }
  TranslationModel model(options, 40, 40, 7);
  EXPECT_TRUE(
      model->target_log_probabilities(random_batch({{5, 6}}, 40, 3)).isfinite().all().item<bool>());
}

}  // namespace
}  // namespace seqconv::internal
