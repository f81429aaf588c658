#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "libtorch/models/decoder.h"
#include "libtorch/models/language_model.h"
#include "libtorch/models/output_layer.h"
#include "libtorch/ops/device.h"
#include "search/step_rows.h"
#include "support/device_calls.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/meta_kernels.h"
#include "support/product_types.h"
#include "test_language_models.h"

namespace seqconv::internal {
namespace {

using testing::calls_of_mixed_devices;
using ::testing::IsEmpty;

constexpr int kWords = 40;

/// Everything that drops something does.
ModelOptions with_dropout(ModelOptions options) {
  options.dropout = options.input_dropout = options.attention_dropout = options.weight_dropout =
      options.activation_dropout = 0.3;
  if (!options.adaptive.softmax_cutoffs.empty())
    options.adaptive.softmax_dropout = 0.3;
  return options;
}

/// Types of activations: the parameters', and those of mixed precision.
const std::vector<std::optional<at::ScalarType>> kActivations = {
    std::nullopt, at::kBFloat16, at::kHalf};

std::vector<at::Tensor> gradients(
    const SequenceModel& model,
    const Batch& batch,
    double smoothing,
    std::optional<at::ScalarType> activations = {}) {
  DropoutPlan plan({.seed = 1, .update = 2, .micro_batch = 3}, model.device());
  plan.set_activation_type(activations);
  LossOptions options;
  options.smoothing = smoothing;
  options.guided_alignment = 0.5;
  const auto sums = model.loss(batch, options, plan);
  EXPECT_EQ(sums.loss.device(), model.device());
  EXPECT_EQ(sums.nll.device(), model.device());
  EXPECT_NE(sums.loss.scalar_type(), at::kBFloat16);
  EXPECT_EQ(sums.objective.device(), model.device());
  return torch::autograd::grad({sums.objective}, model.parameters());
}

/// The batch with links in each row.
Batch linked(Batch batch) {
  for (int64_t row = 0; row < batch.rows; ++row)
    for (const int64_t target : {0, 1})
      for (int64_t source = 0; source <= target; ++source)
        batch.links.push_back({row, source, target});
  return batch;
}

void expect_there(const std::vector<at::Tensor>& tensors, at::Device device) {
  for (const at::Tensor& tensor : tensors)
    EXPECT_EQ(tensor.device(), device);
}

class TranslationOnDevice : public ::testing::TestWithParam<testing::Variant> {};

TEST_P(TranslationOnDevice, LearnsAndDecodesWithoutReadingIt) {
  const ModelOptions options = with_dropout(GetParam().options);
  const TranslationModel model(options, kWords, kWords, 7, at::kMeta);
  expect_there(model->parameters(), at::kMeta);
  const Batch batch = linked(testing::random_batch({{5, 7}, {3, 4}, {6, 2}}, kWords, 3));
  for (const auto& activations : kActivations)
    EXPECT_THAT(
        calls_of_mixed_devices(
            [&] { expect_there(gradients(*model, batch, 0.1, activations), at::kMeta); }),
        IsEmpty());
  EXPECT_THAT(
      calls_of_mixed_devices([&] {
        expect_there({model->target_log_probabilities(batch)}, at::kMeta);
        const auto decoder = make_step_decoder({model, model}, batch);
        const std::vector<int32_t> start = {0, 1, 2}, first(3, kEndId);
        decoder->advance(start, first, {}, 4);
        // Rows of sentences 2 and 0, which change their places.
        const auto rows = testing::advance_with_rows(
            *decoder, std::vector<int32_t>{2, 0, 2, 0}, std::vector<int32_t>{5, 6, 7, 8}, {}, 4);
        EXPECT_EQ(rows.log_probabilities.at(3).size(), size_t{kWords});
      }),
      IsEmpty());
}

// Scores and words are 8 bytes together.
TEST_P(TranslationOnDevice, AStepReadsItsCandidatesAlone) {
  const TranslationModel model(GetParam().options, kWords, kWords, 7, at::kMeta);
  const auto decoder =
      make_step_decoder({model, model}, testing::random_batch({{5, 7}, {3, 4}, {6, 2}}, kWords, 3));
  const std::vector<int32_t> rows = {0, 1, 2}, tokens(3, kEndId);
  const std::vector<int32_t> excluded = {6, 39};
  std::vector<RowConstraint> constraints(3);
  const auto bytes = [&](const StepConstraints& step, int64_t count = 4) {
    int64_t found = 0;
    EXPECT_THAT(
        calls_of_mixed_devices([&] {
          found = testing::bytes_read([&] { decoder->advance(rows, tokens, step, count); });
        }),
        IsEmpty());
    return found;
  };
  EXPECT_EQ(bytes({}), 3 * 4 * 8);
  constraints[1].banned = {2, 17, 5};
  EXPECT_EQ(bytes({.unknown_penalty = 2, .excluded = excluded, .rows = constraints}), 3 * 4 * 8);
  constraints[2].forced = 12;
  EXPECT_EQ(bytes({.rows = constraints}), 3 * 5 * 8);
  EXPECT_EQ(bytes({.each_row = [](const StepRow&) {}}), 3 * kWords * 4);
  EXPECT_EQ(bytes({}, /*count=*/kWords / 4), 3 * kWords * 4);
}

INSTANTIATE_TEST_SUITE_P(
    Variants,
    TranslationOnDevice,
    ::testing::ValuesIn(testing::all_variants()),
    testing::variant_name);

class LanguageModelOnDevice : public ::testing::TestWithParam<testing::Variant> {};

TEST_P(LanguageModelOnDevice, LearnsAndReadsWithoutReadingIt) {
  const ModelOptions options = with_dropout(GetParam().options);
  const LanguageModel model(options, kWords, 7, at::kMeta);
  const std::vector<int32_t> text = {4, 12, 30, 7, 39, 21, 11, 5, 6};
  const Batch batch = make_stream_batch({text, std::span(text).first(4)});
  const bool adaptive = !options.adaptive.softmax_cutoffs.empty();
  for (const auto& activations : kActivations)
    EXPECT_THAT(
        calls_of_mixed_devices([&] {
          expect_there(gradients(*model, batch, adaptive ? 0 : 0.1, activations), at::kMeta);
        }),
        IsEmpty());
  EXPECT_THAT(
      calls_of_mixed_devices([&] {
        expect_there({model->target_log_probabilities(batch)}, at::kMeta);
        LanguageModelReader reader(model);
        reader.read({4, 5, 6});
        expect_there({reader.read({7})}, at::kMeta);
      }),
      IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    Variants,
    LanguageModelOnDevice,
    ::testing::ValuesIn(testing::language_variants()),
    testing::variant_name);

/// The gradients of the rows of a batch that was split after the first `cut`.
std::vector<at::Tensor> gradients_of_parts(
    const SequenceModel& model, const Batch& batch, int64_t cut, double smoothing) {
  std::vector<at::Tensor> sums;
  for (const auto& [first, count] :
       {std::pair<int64_t, int64_t>{0, cut}, {cut, batch.rows - cut}}) {
    const auto before = batch.target_out.begin();
    DropoutPlan plan(
        {.seed = 1, .update = 2, .micro_batch = 3},
        at::kCPU,
        {first, count, {before, before + first * batch.target_steps}});
    LossOptions options;
    options.smoothing = smoothing;
    options.guided_alignment = 0.5;
    const Batch part = cut_rows(batch, first, count);
    const auto loss = model.loss(part, options, plan).objective;
    const auto grads = torch::autograd::grad({loss}, model.parameters(), {}, {}, false, true);
    for (size_t i = 0; i < grads.size(); ++i) {
      if (first == 0)
        sums.push_back(grads[i]);
      else if (grads[i].defined())
        sums[i] = sums[i].defined() ? sums[i] + grads[i] : grads[i];
    }
  }
  return sums;
}

void expect_parts_add_up(const SequenceModel& model, const Batch& batch, double smoothing) {
  const auto whole = gradients(model, batch, smoothing);
  for (const int64_t cut : {1, 3}) {
    const auto parts = gradients_of_parts(model, batch, cut, smoothing);
    for (size_t i = 0; i < whole.size(); ++i) {
      const double norm = std::max(1.0, whole[i].norm().item<double>());
      EXPECT_LE((parts[i] - whole[i]).norm().item<double>(), 1e-12 * norm)
          << model.named_parameters()[i].key();
    }
  }
}

// What a device with too little memory does must not show: the parts keep
// their padding and drop what the whole drops.
TEST_P(TranslationOnDevice, PartsOfABatchAddUpToTheWhole) {
  TranslationModel model(with_dropout(GetParam().options), kWords, kWords, 7);
  model->to(at::kDouble);
  expect_parts_add_up(
      *model, linked(testing::random_batch({{5, 7}, {3, 4}, {6, 2}, {2, 3}}, kWords, 3)), 0.1);
}

TEST_P(LanguageModelOnDevice, PartsOfABatchAddUpToTheWhole) {
  const ModelOptions options = with_dropout(GetParam().options);
  LanguageModel model(options, kWords, 7);
  const std::vector<int32_t> text = {4, 12, 30, 7, 39, 21, 11, 5, 6, 33, 15, 28, 9, 37, 18, 24};
  const std::span all(text);
  const bool adaptive = !options.adaptive.softmax_cutoffs.empty();
  model->to(at::kDouble);
  expect_parts_add_up(
      *model,
      make_stream_batch({all.first(9), all.subspan(9, 5), all.subspan(2, 8), all.last(7)}),
      adaptive ? 0 : 0.1);
}

/// The same model on the CPU and on another device: loss, gradients with the
/// same masks, and log-probabilities.
void expect_same_there(
    const SequenceModel& here, const SequenceModel& there, const Batch& batch, double smoothing) {
  const auto parameters = there.named_parameters();
  for (const auto& item : here.named_parameters())
    EXPECT_TRUE(parameters[item.key()].cpu().equal(item.value())) << item.key();
  const auto want = gradients(here, batch, smoothing);
  const auto got = gradients(there, batch, smoothing);
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_LE(
        (got[i].cpu() - want[i]).norm().item<double>(),
        1e-4 * std::max(1.0, want[i].norm().item<double>()))
        << parameters[i].key();
  const at::Tensor scores = here.target_log_probabilities(batch);
  const at::Tensor scores_there = there.target_log_probabilities(batch).cpu();
  EXPECT_LE((scores - scores_there).abs().max().item<double>(), 1e-4);
}

/// Two steps, with constraints, on the CPU and on another device.
void expect_same_candidates(
    const TranslationModel& here, const TranslationModel& there, const Batch& batch) {
  const auto wanted = make_step_decoder({here}, batch);
  const auto found = make_step_decoder({there}, batch);
  std::vector<RowConstraint> constraints(3);
  constraints[0].banned = {2, 17, 5};
  constraints[2].forced = 12;
  const std::vector<int32_t> rows = {2, 1, 2}, excluded = {6, 39};
  const StepConstraints step = {.unknown_penalty = 0.5, .excluded = excluded, .rows = constraints};
  for (int i = 0; i < 2; ++i) {
    const std::vector<int32_t> tokens(3, i == 0 ? kEndId : 8);
    const auto& best = wanted->advance(rows, tokens, step, 4);
    const auto& best_there = found->advance(rows, tokens, step, 4);
    for (size_t row = 0; row < best.size(); ++row) {
      ASSERT_EQ(best_there[row].size(), best[row].size());
      for (size_t rank = 0; rank < best[row].size(); ++rank)
        EXPECT_NEAR(best_there[row][rank].score, best[row][rank].score, 1e-4);
    }
  }
}

TEST(ModelsOnCuda, EqualThoseOfTheCpu) {
  SEQCONV_REQUIRE_DEVICE(at::kCUDA);
  ops::set_cuda_defaults();
  const Batch batch = linked(testing::random_batch({{5, 7}, {3, 4}, {6, 2}}, kWords, 3));
  for (const testing::Variant& variant : testing::all_variants()) {
    SCOPED_TRACE(variant.name);
    const ModelOptions options = with_dropout(variant.options);
    const TranslationModel here(options, kWords, kWords, 7);
    const TranslationModel there(options, kWords, kWords, 7, at::kCUDA);
    expect_same_there(*here, *there, batch, 0.1);
    expect_same_candidates(here, there, batch);
  }
  const std::vector<int32_t> text = {4, 12, 30, 7, 39, 21, 11, 5, 6};
  const Batch stream = make_stream_batch({text, std::span(text).first(4)});
  for (const testing::Variant& variant : testing::language_variants()) {
    SCOPED_TRACE(variant.name);
    const ModelOptions options = with_dropout(variant.options);
    expect_same_there(
        *LanguageModel(options, kWords, 7),
        *LanguageModel(options, kWords, 7, at::kCUDA),
        stream,
        options.adaptive.softmax_cutoffs.empty() ? 0.1 : 0);
  }
}

/// All products are of 16 bits, and the gradients float32, close to those that
/// float32 gives: by the angle between both, each as one vector. (Activations
/// near 0 fall on the other side of a relu.)
void expect_mixed_precision(const SequenceModel& model, const Batch& batch, double smoothing) {
  std::vector<at::Tensor> got;
  const auto products =
      testing::product_types([&] { got = gradients(model, batch, smoothing, at::kBFloat16); });
  EXPECT_FALSE(products.empty());
  for (const std::string& product : products) {
    EXPECT_NE(product.find(" BFloat16"), std::string::npos) << product;
    EXPECT_EQ(product.find(" Float"), std::string::npos) << product;
  }
  const auto want = gradients(model, batch, smoothing);
  double dot = 0, got_norm = 0, want_norm = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].scalar_type(), at::kFloat);
    dot += (got[i] * want[i]).sum().item<double>();
    got_norm += got[i].square().sum().item<double>();
    want_norm += want[i].square().sum().item<double>();
  }
  EXPECT_GT(dot / std::sqrt(got_norm * want_norm), 0.95);
  EXPECT_NEAR(std::sqrt(got_norm / want_norm), 1, 0.1);
}

TEST_P(TranslationOnDevice, MixedPrecisionGivesTheGradientsOfFloat32) {
  const ModelOptions options = with_dropout(GetParam().options);
  const TranslationModel model(options, kWords, kWords, 7);
  expect_mixed_precision(
      *model, testing::random_batch({{5, 7}, {3, 4}, {6, 2}, {2, 3}}, kWords, 3), 0.1);
}

TEST_P(LanguageModelOnDevice, MixedPrecisionGivesTheGradientsOfFloat32) {
  const ModelOptions options = with_dropout(GetParam().options);
  const LanguageModel model(options, kWords, 7);
  const std::vector<int32_t> text = {4, 12, 30, 7, 39, 21, 11, 5, 6};
  const bool adaptive = !options.adaptive.softmax_cutoffs.empty();
  expect_mixed_precision(
      *model, make_stream_batch({text, std::span(text).first(4)}), adaptive ? 0 : 0.1);
}

// What the tests above rest on.
TEST(DeviceCalls, AreSeenWhereTheyMix) {
  const at::Tensor there = at::ones({2, 2}, at::kMeta);
  const at::Tensor here = at::ones({2, 2});
  EXPECT_THAT(
      calls_of_mixed_devices([&] { at::mm(there, here); }),
      ::testing::Contains("aten::mm of meta, cpu"));
  EXPECT_THAT(
      calls_of_mixed_devices([&] { here.to(at::kMeta); }),
      ::testing::Contains("aten::_to_copy of cpu, meta"));
  EXPECT_THAT(
      calls_of_mixed_devices(
          [&] { at::mm(there, ops::to_device(here, at::kMeta)).mul(at::ones({})); }),
      IsEmpty());
  EXPECT_ANY_THROW(there.sum().item<float>());
  EXPECT_EQ(
      testing::bytes_read([&] {
        ops::to_host(there.mul(2));
        ops::to_host(here);
        ops::to_host(there.to(at::kDouble));
      }),
      4 * 4 + 4 * 8);
}

}  // namespace
}  // namespace seqconv::internal
