#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "golden_checks.h"
#include "seqconv/models/output_layer.h"

// The DynamicConv model that fairseq trained on Multi30k, imported, against
// what fairseq computed with it on 24 sentences.
namespace seqconv {
namespace {

using testing::expect_hypothesis;
using testing::expect_near;
using testing::GoldenModel;
using testing::kOutputs;
using testing::row_of;

std::vector<std::filesystem::path> folder() {
  const auto path = testing::golden_folder() / "multi30k-dynamicconv";
  if (std::filesystem::exists(path / "model.pt"))
    return {path};
  return {};
}

TEST(GoldenMulti30k, OutputsAndLogProbabilities) {
  SEQCONV_REQUIRE_GOLDEN(folder());
  const at::NoGradGuard no_grad;
  const GoldenModel golden(folder()[0], "golden");
  const TranslationModel model = golden.translation_model();
  EXPECT_EQ(model->parameter_count(), 5146112);
  ASSERT_EQ(golden.rows(), 24);
  for (int64_t row = 0; row < golden.rows(); ++row) {
    SCOPED_TRACE(concat("row ", row));
    DropoutPlan plan;
    const at::Tensor source = golden.tokens("src", row);
    const EncoderOutput memory = model->encode(
        source,
        at::tensor(at::ArrayRef<int64_t>(source.size(1)), at::kLong),
        plan);
    expect_near(
        memory.states,
        row_of(golden.recorded("encoder_out"), row, source.size(1)),
        kOutputs);
    const at::Tensor hidden =  // [T, C]
        model->decode(memory, golden.tokens("prev_output", row), plan)[0];
    const at::Tensor found = model->output().log_probabilities(hidden);
    const at::Tensor target = golden.tokens("tgt", row)[0];
    expect_near(
        found.gather(1, target.unsqueeze(1)).squeeze(1).unsqueeze(0),
        row_of(golden.recorded("ref_logprobs"), row, target.size(0)),
        kOutputs);
    const std::string logits = concat("logits.row", row);
    if (golden.has(logits))
      expect_near(
          found,
          at::log_softmax(golden.recorded(logits)[0], -1),
          kOutputs);
  }
}

TEST(GoldenMulti30k, EveryLayer) {
  SEQCONV_REQUIRE_GOLDEN(folder());
  const GoldenModel golden(folder()[0], "golden");
  const TranslationModel model = golden.translation_model();
  for (const int64_t row : {2, 20})
    testing::walk_layers(golden, *model, row);
}

TEST(GoldenMulti30k, BeamSearch) {
  SEQCONV_REQUIRE_GOLDEN(folder());
  const GoldenModel golden(folder()[0], "golden");
  const TranslationModel model = golden.translation_model();
  const auto found = [&](int64_t row, const SearchOptions& options) {
    const auto decoder = make_step_decoder({model}, golden.batch({row}));
    const int64_t length = golden.tokens("src", row).size(1);
    return search(
        *decoder,
        {{.source_length = length, .prefix = {}}},
        options)[0];
  };
  for (const Json& wanted : golden.outputs().at("rows")) {
    const int64_t row = wanted.at("row");
    SCOPED_TRACE(concat("row ", row));
    const auto best = found(row, {.beam = 5, .n_best = 5});
    const Json& list = wanted.at("beam5_lenpen1");
    ASSERT_EQ(best.size(), list.size());
    for (size_t i = 0; i < list.size(); ++i)
      expect_hypothesis(best[i], list[i]);
    expect_hypothesis(
        found(row, {.beam = 5, .length_penalty = 0.6})[0],
        wanted.at("beam5_lenpen0.6_best"));
    expect_hypothesis(found(row, {.beam = 1})[0], wanted.at("beam1"));
  }
}

}  // namespace
}  // namespace seqconv
