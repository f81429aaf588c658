#include <gtest/gtest.h>

#include "libtorch/models/language_model.h"
#include "resident_memory.h"
#include "test_models.h"

// The loss is computed in chunks of rows, forward and backward: the logits of
// a whole batch, tokens x vocabulary, never exist.
namespace seqconv::internal {
namespace {

using testing::reset_peak;
using testing::status_kb;

constexpr int kManyWords = 30'000;

/// Megabytes that a training step needs above what was there before it.
double step_megabytes(const LanguageModel& model, int tokens) {
  const Batch batch = testing::random_batch({{1, tokens / 2}, {1, tokens / 2}}, kManyWords, 3);
  const int64_t before = status_kb("VmRSS");
  EXPECT_TRUE(reset_peak());
  DropoutPlan evaluation;
  model->loss(batch, {}, evaluation).loss.backward();
  return static_cast<double>(status_kb("VmHWM") - before) / 1024;
}

void expect_little_memory(const ModelOptions& options) {
  const LanguageModel model(options, kManyWords, 3);
  step_megabytes(model, 512);  // gradients, and what allocators keep
  // All logits: 4 bytes x 2,048 tokens x 30,000 words = 245 MB.
  EXPECT_LT(step_megabytes(model, 2048), 100);
}

ModelOptions options_of(Tying tie) {
  ModelOptions options = testing::small_options(MixerKind::kLightConv);
  options.encoder = ModelOptions{}.encoder;
  options.norm = NormPlacement::kPre;
  options.tie = tie;
  return options;
}

TEST(LossMemory, OfOneSoftmaxDoesNotGrowWithTokensTimesVocabulary) {
  expect_little_memory(options_of(Tying::kDecoder));
}

TEST(LossMemory, OfAnAdaptiveSoftmaxDoesNotGrowWithTokensTimesVocabulary) {
  ModelOptions options = options_of(Tying::kNone);
  options.adaptive.softmax_cutoffs = {10'000, 20'000};
  options.adaptive.softmax_factor = 2;
  expect_little_memory(options);
}

}  // namespace
}  // namespace seqconv::internal
