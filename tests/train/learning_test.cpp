#include <gmock/gmock.h>

#include "base/options.h"
#include "libtorch/backend/backend.h"
#include "pipeline/translator.h"
#include "tiny_task.h"

namespace seqconv::internal {
namespace {

/// Whatever mixes along time, one layer a side must learn to reverse digits.
class Learning : public testing::TinyTask, public ::testing::WithParamInterface<MixerKind> {};

TEST_P(Learning, DigitsAreReversed) {
  write_pairs("train", 3000, 1, /*reversed=*/true);
  write_pairs("valid", 100, 2, /*reversed=*/true);
  config_.model = testing::tiny_model(GetParam());
  // One that averages the past cannot say how far the end of a sentence is.
  if (GetParam() == MixerKind::kAverageAttention)
    config_.model.encoder = testing::tiny_model(MixerKind::kSelfAttention).encoder;
  config_.model.dim = 64;
  config_.model.ffn_dim = 128;
  config_.batching.max_tokens = 256;
  // Convolutions are told what lies near, attention must find it out.
  const bool attention =
      GetParam() == MixerKind::kSelfAttention || GetParam() == MixerKind::kAverageAttention;
  config_.training.max_updates = attention ? 540 : 300;
  config_.training.max_epochs = 0;
  config_.training.label_smoothing = 0;
  config_.training.log_every = 100;
  config_.schedule.learning_rate = 5e-3;
  config_.schedule.kind = ScheduleKind::kCosine;
  config_.schedule.warmup_updates = 50;
  config_.schedule.period = config_.training.max_updates - 50;
  train_model(request("run"));
  double best = 99;
  for (const Json& record : records("run", "validation"))
    best = std::min(best, record["nll_base2"].get<double>());
  // Guessing among ten digits costs log2(10) = 3.3; knowing costs nothing.
  EXPECT_LT(best, 0.1);
  TranslatorOptions options;
  options.search = config_.decoding;
  const Translator translator(open_translation({path("run")}, TorchBackends()), options);
  const auto found = translator.translate({{"4 0 7", ""}, {"1 2 3 4", ""}});
  EXPECT_EQ(found[0].translations[0].text, "7 0 4");
  EXPECT_EQ(found[1].translations[0].text, "4 3 2 1");
}

using Precisions = testing::TinyTask;

// Both runs are validated in float32, so that their losses compare.
TEST_F(Precisions, BFloat16LearnsAsFloat32Does) {
  write_pairs("train", 1000, 1, /*reversed=*/true);
  write_pairs("valid", 100, 2, /*reversed=*/true);
  config_.model = testing::tiny_model(MixerKind::kDynamicConv);
  config_.model.dim = 64;
  config_.model.ffn_dim = 128;
  config_.batching.max_tokens = 512;
  config_.training.max_updates = 150;
  config_.training.max_epochs = 0;
  config_.training.label_smoothing = 0;
  config_.schedule.learning_rate = 5e-3;
  config_.schedule.warmup_updates = 20;
  std::map<Precision, double> bits;
  for (const auto precision : {Precision::kFloat32, Precision::kBFloat16}) {
    config_.training.precision = precision;
    const std::string name(enum_name(precision));
    train_model(request(name));
    bits[precision] = records(name, "validation").back()["nll_base2"];
  }
  EXPECT_LT(bits[Precision::kFloat32], 2.0);  // of log2(10) = 3.3
  EXPECT_NE(bits[Precision::kBFloat16], bits[Precision::kFloat32]);
  EXPECT_NEAR(bits[Precision::kBFloat16], bits[Precision::kFloat32], 0.02);
}

INSTANTIATE_TEST_SUITE_P(
    Blocks,
    Learning,
    ::testing::Values(
        MixerKind::kLightConv,
        MixerKind::kDynamicConv,
        MixerKind::kTalk,
        MixerKind::kSelfAttention,
        MixerKind::kAverageAttention,
        MixerKind::kCnn),
    [](const auto& info) { return std::string(enum_name(info.param)); });

}  // namespace
}  // namespace seqconv::internal
