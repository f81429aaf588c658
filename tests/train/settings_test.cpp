#include "train/settings.h"

#include <gmock/gmock.h>

#include "base/options.h"
#include "support/errors.h"

namespace seqconv::internal {
namespace {

using ::testing::HasSubstr;

std::string resume_with(const std::string& assignment) {
  const Json stored = write_options(TrainConfig{});
  Json present = stored;
  apply_override(present, assignment);
  return testing::error_of<UsageError>([&] { check_same_settings(stored, present); });
}

TEST(ResumeSettings, WhatChangesTheNumbersIsRefusedByItsKey) {
  EXPECT_THAT(
      resume_with("schedule.learning_rate=0.1"),
      ::testing::AllOf(
          HasSubstr("cannot resume: schedule.learning_rate was 0.0005"), HasSubstr("is now 0.1")));
  EXPECT_THAT(resume_with("model.encoder.heads=2"), HasSubstr("model.encoder.heads was 8"));
  EXPECT_THAT(resume_with("training.seed=9"), HasSubstr("training.seed"));
  EXPECT_THAT(resume_with("training.accumulate=2"), HasSubstr("training.accumulate"));
  EXPECT_THAT(
      resume_with("training.ema_decay=0.999"),
      ::testing::AllOf(
          HasSubstr("cannot resume: training.ema_decay was 0.0"), HasSubstr("is now 0.999")));
  EXPECT_THAT(
      resume_with("training.best_by=bleu"),
      HasSubstr(
          "cannot resume: training.best_by was \"loss\" when the run began and is now \"bleu\""));
  EXPECT_THAT(resume_with("text.lowercase=true"), HasSubstr("text.lowercase"));
  for (const std::string key : {"data.max_source_tokens", "data.max_target_tokens"})
    EXPECT_THAT(resume_with(key + "=9"), HasSubstr(key + " was 0"));
}

TEST(ResumeSettings, LimitsLoggingSearchAndFileNamesMayChange) {
  const Json stored = write_options(TrainConfig{});
  for (const std::string assignment :
       {"training.max_epochs=7",
        "training.max_updates=70",
        "training.patience=3",
        "training.log_every=1",
        "training.keep_last=1",
        "training.threads=1",
        "training.validate_bleu=true",
        "training.validate_metrics=[\"chrf\"]",
        "decoding.beam=1",
        "decoding.stepwise_length_penalty=true",
        "data.train_source=[\"moved\"]"}) {
    Json present = stored;
    apply_override(present, assignment);
    EXPECT_NO_THROW(check_same_settings(stored, present)) << assignment;
  }
}

TEST(ResumeSettings, AKeyThatAnOlderRunDidNotStoreHadItsDefault) {
  Json stored = write_options(TrainConfig{});
  stored["optimizer"].erase("clip_norm");
  Json present = write_options(TrainConfig{});
  EXPECT_NO_THROW(check_same_settings(stored, present));
  present["optimizer"]["clip_norm"] = 1.0;
  EXPECT_THROW(check_same_settings(stored, present), UsageError);
}

TEST(ResumeSettings, AKeyThatWasOnceOneValueMayHaveBecomeAList) {
  Json stored = write_options(TrainConfig{});
  stored["model"]["encoder"]["conv_heads"] = 0;
  stored["model"]["encoder"]["glu"] = true;
  stored["model"]["encoder"].erase("normalization");
  Json present = write_options(TrainConfig{});
  EXPECT_NO_THROW(check_same_settings(stored, present));
  present["model"]["encoder"]["glu"] = Json::array({false});
  EXPECT_THROW(check_same_settings(stored, present), UsageError);
}

ModelOptions small_model() {
  ModelOptions options;
  options.encoder.layers = 2;
  options.decoder.layers = 2;
  options.encoder.kernel_sizes = {3};
  options.decoder.kernel_sizes = {3};
  return options;
}

TEST(FineTuning, AnotherArchitectureIsRefusedByItsKey) {
  ModelOptions other = small_model();
  other.dim = 256;
  EXPECT_THAT(
      testing::error_of<UsageError>([&] { check_same_architecture(small_model(), other, "base"); }),
      HasSubstr(
          "cannot start from 'base': model.dim is 512 in the configuration and 256 in that model"));
  other = small_model();
  other.decoder.kernel_sizes = {3, 7};
  EXPECT_THAT(
      testing::error_of<UsageError>([&] { check_same_architecture(small_model(), other, "base"); }),
      HasSubstr("model.decoder.kernel_sizes is [3,3]"));
  other = small_model();
  other.encoder.ffn_dim = 64;
  EXPECT_THAT(
      testing::error_of<UsageError>([&] { check_same_architecture(small_model(), other, "base"); }),
      HasSubstr("model.encoder.ffn_dim is 2048 in the configuration and 64 in that model"));
  other = small_model();
  other.decoder.conv_dim = {256};
  EXPECT_THAT(
      testing::error_of<UsageError>([&] { check_same_architecture(small_model(), other, "base"); }),
      HasSubstr(
          "model.decoder.conv_dim is [0,0] in the configuration and [256,256] in that model"));
}

TEST(FineTuning, NormsMayBeSaidByTheModelOrByItsSides) {
  ModelOptions other = small_model();
  other.norm = NormPlacement::kPre;
  other.encoder.norm = other.decoder.norm = SideNorm::kPost;
  EXPECT_NO_THROW(check_same_architecture(small_model(), other, "base"));
  other.decoder.norm = SideNorm::kAuto;
  EXPECT_THAT(
      testing::error_of<UsageError>([&] { check_same_architecture(small_model(), other, "base"); }),
      HasSubstr("model.decoder.norm is \"post\" in the configuration and \"pre\" in that model"));
}

TEST(FineTuning, PositionsMayBeSaidByTheModelOrByItsSides) {
  ModelOptions wanted = small_model();
  wanted.positions = PositionKind::kLearned;
  wanted.max_positions = 32;
  ModelOptions other = small_model();
  for (StackOptions* side : {&other.encoder, &other.decoder}) {
    side->positions = SidePositions::kLearned;
    side->max_positions = 32;
  }
  EXPECT_NO_THROW(check_same_architecture(wanted, other, "base"));
  const auto error = [&] {
    return testing::error_of<UsageError>([&] { check_same_architecture(wanted, other, "base"); });
  };
  other.encoder.max_positions = 48;
  EXPECT_THAT(
      error(),
      HasSubstr("model.encoder.max_positions is 32 in the configuration and 48 in that model"));
  other.encoder.max_positions = 32;
  other.decoder.positions = SidePositions::kNone;
  EXPECT_THAT(error(), HasSubstr("model.decoder.max_positions is 32"));
  wanted = small_model();
  other = small_model();
  wanted.positions = PositionKind::kNone;
  EXPECT_THAT(
      error(),
      HasSubstr("model.decoder.positions is \"none\" in the configuration and \"sinusoidal\" in "
                "that model"));
}

TEST(FineTuning, DropoutAndSpellingMayDiffer) {
  ModelOptions other = small_model();
  other.dropout = 0.5;
  other.weight_dropout = 0.3;
  other.max_positions = 77;
  other.encoder.max_positions = 78;
  other.encoder.kernel_sizes = {3, 3};
  other.encoder.conv_heads = {other.encoder.heads, 0};
  other.encoder.glu = {true, true};
  other.encoder.conv_dim = {0, other.dim};
  other.output_dim = other.dim;
  other.ffn_dim = 64;
  other.encoder.ffn_dim = other.decoder.ffn_dim = small_model().ffn_dim;
  EXPECT_NO_THROW(check_same_architecture(small_model(), other, "base"));
  other.positions = PositionKind::kLearned;
  EXPECT_THROW(check_same_architecture(small_model(), other, "base"), UsageError);
}

}  // namespace
}  // namespace seqconv::internal
