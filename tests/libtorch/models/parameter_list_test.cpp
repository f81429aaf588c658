#include "model/parameters.h"

#include <gtest/gtest.h>

#include "libtorch/models/language_model.h"
#include "libtorch/models/translation_model.h"
#include "test_models.h"

// The list that does without LibTorch against the modules themselves.
namespace seqconv::internal {
namespace {

using testing::Variant;

constexpr int64_t kSource = 40;
constexpr int64_t kTarget = 48;

void expect_listed(const torch::nn::Module& model, const std::vector<ParameterShape>& list) {
  const auto parameters = model.named_parameters();
  ASSERT_EQ(list.size(), parameters.size());
  for (size_t i = 0; i < list.size(); ++i) {
    EXPECT_EQ(list[i].name, parameters[i].key());
    EXPECT_EQ(list[i].shape, parameters[i].value().sizes().vec()) << list[i].name;
  }
}

class ParameterListTest : public ::testing::TestWithParam<Variant> {};

INSTANTIATE_TEST_SUITE_P(
    Blocks, ParameterListTest, ::testing::ValuesIn(testing::all_variants()), testing::variant_name);

TEST_P(ParameterListTest, IsThatOfATranslationModel) {
  ModelOptions options = GetParam().options;
  for (const NormPlacement norm : {NormPlacement::kPost, NormPlacement::kPre})
    for (const Tying tie : {Tying::kNone, Tying::kDecoder, Tying::kAll})
      for (const PositionKind positions :
           {PositionKind::kSinusoidal, PositionKind::kLearned, PositionKind::kNone}) {
        if (!testing::may_tie(options, tie))
          continue;
        options.norm = norm;
        options.tie = tie;
        options.positions = positions;
        const int64_t source = tie == Tying::kAll ? kTarget : kSource;
        const TranslationModel model(options, source, kTarget);
        expect_listed(*model, list_parameters(options, Task::kTranslation, {source, kTarget}));
      }
}

TEST_P(ParameterListTest, IsThatOfALanguageModel) {
  for (const Tying tie : {Tying::kNone, Tying::kDecoder}) {
    ModelOptions options = GetParam().options;
    if (!testing::may_tie(options, tie))
      continue;
    options.encoder = ModelOptions{}.encoder;
    options.norm = NormPlacement::kPre;
    options.tie = tie;
    const LanguageModel model(options, kTarget);
    expect_listed(*model, list_parameters(options, Task::kLanguageModel, {0, kTarget}));
  }
}

/// What the last field of a vocabulary cut into bands can be.
struct Bands {
  Tying tie;
  std::vector<int64_t> input_cutoffs;
  int64_t input_dim;  // of the first band, or of one table
  bool tie_projections;
  std::vector<int64_t> softmax_cutoffs;
  int64_t output_dim = 0;
};

TEST(ParameterListBands, AreThoseOfALanguageModel) {
  const Bands cases[] = {
      {Tying::kNone, {}, 0, false, {10, 20}},
      {Tying::kNone, {8, 30}, 32, false, {10, 48}},
      {Tying::kNone, {8, 48}, 0, false, {}},
      {Tying::kDecoder, {10, 20}, 0, false, {10, 20}},
      {Tying::kDecoder, {10, 20}, 28, true, {10, 20}},
      {Tying::kNone, {}, 12, false, {10, 20}, 40},
      {Tying::kNone, {8, 30}, 32, false, {10, 48}, 28},
      {Tying::kNone, {8, 30}, 32, false, {}, 28},
  };
  for (const Bands& bands : cases) {
    ModelOptions options = testing::small_options(MixerKind::kDynamicConv);
    options.encoder = ModelOptions{}.encoder;
    options.norm = NormPlacement::kPre;
    options.tie = bands.tie;
    options.positions = PositionKind::kLearned;
    options.adaptive.input_cutoffs = bands.input_cutoffs;
    options.adaptive.input_factor = options.adaptive.softmax_factor = 2.5;
    (bands.input_cutoffs.empty() ? options.input_dim : options.adaptive.input_dim) =
        bands.input_dim;
    options.output_dim = bands.output_dim;
    options.adaptive.tie_projections = bands.tie_projections;
    options.adaptive.softmax_cutoffs = bands.softmax_cutoffs;
    const LanguageModel model(options, kTarget);
    const auto list = list_parameters(options, Task::kLanguageModel, {0, kTarget});
    expect_listed(*model, list);
    EXPECT_EQ(parameter_count(list), model->parameter_count());
  }
}

TEST(ParameterListBands, AreThoseOfATranslationModelsOutput) {
  for (const auto& cutoffs : {std::vector<int64_t>{10, 20}, {48}})
    for (const int64_t width : {0, 28}) {
      ModelOptions options = testing::small_options(MixerKind::kDynamicConv);
      options.tie = Tying::kNone;
      options.output_dim = width;
      options.adaptive.softmax_cutoffs = cutoffs;
      const TranslationModel model(options, kSource, kTarget);
      expect_listed(*model, list_parameters(options, Task::kTranslation, {kSource, kTarget}));
    }
}

}  // namespace
}  // namespace seqconv::internal
