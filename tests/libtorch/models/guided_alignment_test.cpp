#include "libtorch/models/guided_alignment.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cmath>

#include "libtorch/backend/backend.h"
#include "libtorch/models/translation_model.h"
#include "libtorch/nn/flat_parameters.h"
#include "support/gradients.h"
#include "test_models.h"

namespace seqconv::internal {
namespace {

using testing::random_batch;
using testing::Variant;

constexpr int kWordsOfSides = 40;

/// Two sentences, with tokens that have no link, one and several.
Batch linked_batch() {
  Batch batch = random_batch({{6, 5}, {9, 3}}, kWordsOfSides, 3);
  batch.links = {{0, 0, 1}, {0, 2, 0}, {0, 3, 1}, {0, 5, 1}, {0, 5, 4}, {1, 1, 2}, {1, 8, 0}};
  return batch;
}

/// The loss token by token: shares [T, S] of each sentence, of which row t is the look that
/// translation reads for token t.
double slow_loss(const std::vector<SourceShares>& shares, const Batch& batch) {
  double loss = 0;
  for (int64_t row = 0; row < batch.rows; ++row)
    for (int64_t token = 0; token < batch.target_steps; ++token) {
      double sum = 0;
      int64_t count = 0;
      for (const BatchLink& link : batch.links) {
        if (link.row != row || link.target != token)
          continue;
        const SourceShares& own = shares[static_cast<size_t>(row)];
        sum -= std::log(own.values[static_cast<size_t>(token * own.source_tokens + link.source)]);
        ++count;
      }
      loss += count > 0 ? sum / static_cast<double>(count) : 0;
    }
  return loss;
}

TEST(GuidedAlignment, HasNumericalGradients) {
  const Batch batch = linked_batch();
  const auto loss = [&](const std::vector<at::Tensor>& inputs) {
    return guided_alignment_loss(at::log_softmax(inputs[0], -1), batch);
  };
  testing::expect_numerical_gradients(
      loss, {at::randn({batch.rows, batch.target_steps, batch.source_steps}, at::kDouble)});
}

TEST(GuidedAlignment, IsLeastWhereATokenSharesItsLookAmongItsLinks) {
  Batch batch = random_batch({{3, 2}}, kWordsOfSides, 3);
  batch.links = {{0, 0, 0}, {0, 2, 0}};
  at::Tensor shares = at::full({1, 3, 4}, 1e-6, at::kDouble);
  shares[0][1][0] = shares[0][1][2] = 0.5;  // the step that reads token 0
  EXPECT_NEAR(guided_alignment_loss(shares.log(), batch).item<double>(), std::log(2), 1e-9);
  shares[0][1][0] = 0.6;
  shares[0][1][2] = 0.4;
  EXPECT_GT(guided_alignment_loss(shares.log(), batch).item<double>(), std::log(2) + 0.01);
  batch.links = {{0, 0, 2}};
  EXPECT_THROW(guided_alignment_loss(shares.log(), batch), Error) << "of </s>";
}

class GuidedModel : public ::testing::TestWithParam<Variant> {
 protected:
  GuidedModel() : model_(GetParam().options, kWordsOfSides, kWordsOfSides, 7) {}

  LossSums loss(const Batch& batch, double weight, at::Tensor gradient_scale = {}) const {
    DropoutPlan plan;
    LossOptions options{{.smoothing = 0.1}, weight};
    options.gradient_scale = gradient_scale;
    return model_->loss(batch, options, plan);
  }

  TranslationModel model_;
};

INSTANTIATE_TEST_SUITE_P(
    Variants, GuidedModel, ::testing::ValuesIn(testing::all_variants()), testing::variant_name);

TEST_P(GuidedModel, LearnsWhatTranslationReads) {
  const Batch batch = linked_batch();
  const auto read = AlignmentOptions::guided(GetParam().options.decoder.layers);
  const double wanted =
      slow_loss(mean_of_heads(model_->source_shares(batch, batch, read.layer), batch, read), batch);
  const LossSums sums = loss(batch, 0.5);
  EXPECT_EQ(sums.aligned_tokens, 5);
  EXPECT_NEAR(sums.alignment.item<double>(), wanted, 1e-5 * wanted);
  EXPECT_NEAR(
      sums.objective.item<double>(), sums.loss.item<double>() + 0.5 * wanted, 1e-5 * wanted);
}

TEST_P(GuidedModel, DirectionalDerivativeMatchesFiniteDifferences) {
  FlatParameters flat(*model_);
  const Batch batch = linked_batch();
  loss(batch, 2).objective.backward();
  const at::Tensor direction = flat.gradients() / flat.gradients().norm();
  const double wanted = flat.gradients().norm().item<double>();
  at::NoGradGuard no_grad;
  const double h = 1e-3;
  flat.values().add_(direction, h);
  const double above = loss(batch, 2).objective.item<double>();
  flat.values().add_(direction, -2 * h);
  const double below = loss(batch, 2).objective.item<double>();
  EXPECT_NEAR((above - below) / (2 * h), wanted, 0.01 * wanted);
}

TEST_P(GuidedModel, PartsOfABatchAddUp) {
  FlatParameters flat(*model_);
  const Batch batch = linked_batch();
  loss(batch, 2).objective.backward();
  const at::Tensor wanted = flat.gradients().clone();
  flat.gradients().zero_();
  double alignment = 0;
  for (const int64_t row : {0, 1}) {
    const Batch part = cut_rows(batch, row, 1);  // which its loss looks at until backward()
    const LossSums sums = loss(part, 2);
    sums.objective.backward();
    alignment += sums.alignment.item<double>();
  }
  EXPECT_NEAR(alignment, loss(batch, 2).alignment.item<double>(), 1e-4);
  EXPECT_LT(
      (flat.gradients() - wanted).abs().max().item<float>(),
      1e-4 * wanted.abs().max().item<float>());
}

TEST_P(GuidedModel, AScaleIsOfGradientsAlone) {
  const Batch batch = linked_batch();
  const auto parameters = model_->parameters();
  const LossSums plain = loss(batch, 2), scaled = loss(batch, 2, at::tensor(8.0F));
  EXPECT_EQ(plain.objective.item<float>(), scaled.objective.item<float>());
  const auto wanted = torch::autograd::grad({plain.objective}, parameters);
  const auto got = torch::autograd::grad({scaled.objective}, parameters);
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_LE(
        (got[i] - 8 * wanted[i]).abs().max().item<float>(),
        1e-4 * (8 * wanted[i]).abs().max().item<float>() + 1e-4);
}

TEST(GuidedAlignment, OffChangesNoBitOfALoss) {
  ModelOptions options = testing::small_options(MixerKind::kDynamicConv);
  options.dropout = options.attention_dropout = 0.3;
  const TranslationModel model(options, kWordsOfSides, kWordsOfSides, 7);
  const auto loss = [&](const Batch& batch, double weight) {
    DropoutPlan plan({.seed = 1, .update = 2});
    LossOptions wanted;
    wanted.guided_alignment = weight;
    return model->loss(batch, wanted, plan);
  };
  const Batch batch = linked_batch();
  Batch without = batch;
  without.links.clear();
  const LossSums off = loss(batch, 0), guided = loss(batch, 1), none = loss(without, 1);
  EXPECT_FALSE(off.alignment.defined());
  EXPECT_FALSE(none.alignment.defined());
  EXPECT_TRUE(off.objective.is_same(off.loss));
  EXPECT_EQ(off.loss.item<float>(), none.loss.item<float>());
  // The masks of the tokens' loss are the same ones beside it.
  EXPECT_EQ(off.loss.item<float>(), guided.loss.item<float>());
  EXPECT_GT(guided.objective.item<float>(), guided.loss.item<float>());
}

}  // namespace
}  // namespace seqconv::internal
