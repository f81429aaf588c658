#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "golden_checks.h"
#include "libtorch/models/output_layer.h"

// Translation models with the text that they were given, imported, against what
// was computed with them.
namespace seqconv::internal {
namespace {

using testing::expect_hypothesis;
using testing::expect_near;
using testing::GoldenKind;
using testing::GoldenModel;
using testing::kOutputs;
using testing::row_of;

class GoldenText : public ::testing::TestWithParam<std::filesystem::path> {
 protected:
  GoldenText() : golden_(GetParam(), "golden") {}

  GoldenModel golden_;
  TranslationModel model_ = golden_.translation_model();
};

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenText);
INSTANTIATE_TEST_SUITE_P(
    Folders,
    GoldenText,
    ::testing::ValuesIn(testing::golden_folders(GoldenKind::kText)),
    testing::golden_model_name);

TEST_P(GoldenText, OutputsAndLogProbabilities) {
  const at::NoGradGuard no_grad;
  const Json& outputs = golden_.outputs();
  EXPECT_EQ(model_->parameter_count(), outputs.value("parameters", model_->parameter_count()));
  ASSERT_EQ(static_cast<int64_t>(outputs.at("rows").size()), golden_.rows());
  ASSERT_FALSE(golden_.recorded_names("logits.row").empty());
  for (int64_t row = 0; row < golden_.rows(); ++row) {
    SCOPED_TRACE(concat("row ", row));
    DropoutPlan plan;
    const at::Tensor source = golden_.tokens("src", row);
    const EncoderOutput memory =
        model_->encode(source, at::tensor(at::ArrayRef<int64_t>(source.size(1)), at::kLong), plan);
    expect_near(
        memory.states, row_of(golden_.recorded("encoder_out"), row, source.size(1)), kOutputs);
    const at::Tensor hidden =  // [T, C]
        model_->decode(memory, golden_.tokens("prev_output", row), plan)[0];
    const at::Tensor found = model_->output().log_probabilities(hidden);
    const at::Tensor target = golden_.tokens("tgt", row)[0];
    expect_near(
        found.gather(1, target.unsqueeze(1)).squeeze(1).unsqueeze(0),
        row_of(golden_.recorded("ref_logprobs"), row, target.size(0)),
        kOutputs);
    const std::string logits = concat("logits.row", row);
    if (golden_.has(logits))
      expect_near(found, at::log_softmax(golden_.recorded(logits)[0], -1), kOutputs);
  }
}

TEST_P(GoldenText, EveryLayer) {
  int rows = 0;
  for (int64_t row = 0; row < golden_.rows(); ++row)
    if (golden_.has(concat("dec.embed.row", row))) {
      testing::walk_layers(golden_, *model_, row);
      ++rows;
    }
  EXPECT_GE(rows, 1);
}

TEST_P(GoldenText, BeamSearch) {
  for (const auto& backend : golden_.translation_backends()) {
    const auto found = [&](int64_t row, const DecodingOptions& options) {
      const auto source = golden_.ids("src", row);
      const auto decoder = backend->start({source});
      return search(*decoder, {{std::ssize(source) + 1, {}}}, options)[0];
    };
    for (const Json& wanted : golden_.outputs().at("rows")) {
      const int64_t row = wanted.at("row");
      SCOPED_TRACE(concat("row ", row));
      const auto best = found(row, {.beam = 5, .n_best = 5});
      const Json& list = wanted.at("beam5_lenpen1");
      ASSERT_EQ(best.size(), list.size());
      for (size_t i = 0; i < list.size(); ++i)
        expect_hypothesis(best[i], list[i]);
      expect_hypothesis(
          found(row, {.beam = 5, .length_penalty = 0.6})[0], wanted.at("beam5_lenpen0.6_best"));
      expect_hypothesis(found(row, {.beam = 1})[0], wanted.at("beam1"));
    }
  }
}

}  // namespace
}  // namespace seqconv::internal
