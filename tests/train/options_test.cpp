#include "train/options.h"

#include <gmock/gmock.h>

#include "base/options.h"
#include "support/errors.h"

namespace seqconv::internal {
namespace {

using ::testing::HasSubstr;

TrainConfig good() {
  TrainConfig config;
  config.data.train_source = {"a"};
  config.data.train_target = {"b"};
  config.data.valid_source = {"c"};
  config.data.valid_target = {"d"};
  config.training.max_updates = 10;
  config.model.encoder.kernel_sizes = {3};
  config.model.decoder.kernel_sizes = {3};
  return config;
}

/// The message for a good configuration after one assignment.
std::string message(const std::string& assignment) {
  Json table = write_options(good());
  apply_override(table, assignment);
  return testing::error_of<UsageError>([&] { read_train_config(table); });
}

TEST(TrainOptions, AGoodConfigurationPasses) {
  EXPECT_NO_THROW(good().validate());
}

TEST(TrainOptions, WrongValuesNameTheirKey) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"training.accumulate=0", "training.accumulate must be >= 1, but got 0"},
      {"training.label_smoothing=1", "training.label_smoothing must be >= 0"},
      {"training.guided_alignment=-0.5",
       "training.guided_alignment must be a number >= 0, but got -0.5"},
      {"training.guided_alignment=nan", "training.guided_alignment must be a finite number"},
      {"training.log_every=0", "training.log_every must be >= 1, but got 0"},
      {"training.keep_last=-1", "training.keep_last must be >= 0, but got -1"},
      {"training.threads=-2", "training.threads must be >= 0, but got -2"},
      {"training.threads=100000", "training.threads must be <= 1024"},
      {"training.seed=-1", "training.seed must be >= 0"},
      {"training.max_updates=0", "training would never end: set"},
      {"optimizer.beta2=1.0", "optimizer.beta2 must be >= 0 and < 1"},
      {"optimizer.epsilon=0", "optimizer.epsilon must be > 0"},
      {"optimizer.momentum=1", "optimizer.momentum must be >= 0 and < 1"},
      {"optimizer.clip_norm=-1", "optimizer.clip_norm must be >= 0"},
      {"optimizer.kind=sgd", "optimizer.kind must be 'adam' or 'nag'"},
      {"schedule.warmup_updates=0", "schedule.warmup_updates must be > 0 with"},
      {"schedule.learning_rate=0", "schedule.learning_rate must be > 0"},
      {"schedule.period=-1", "schedule.period must be >= 0"},
      {"schedule.warmup_share=1", "schedule.warmup_share must be >= 0 and < 1"},
      {"schedule.cooldown_share=-0.1", "schedule.cooldown_share must be >= 0 and < 1"},
      {"training.max_minutes=-1", "training.max_minutes must be >= 0, but got -1"},
      {"schedule.period_multiplier=0.5", "schedule.period_multiplier must be >= 1"},
      {"batching.max_tokens=0", "batching.max_tokens must be >= 1"},
      {"batching.multiple=0", "batching.multiple must be >= 1"},
      {"text.joined=false", "model.tie = \"all\""},
      {"text.character_coverage=2", "text.character_coverage must be <= 1"},
      {"model.dropout=1.5", "model.dropout"},
      {"decoding.beam=0", "decoding.beam"},
      {"data.train_target=[\"b\", \"c\"]",
       "data.train_source and data.train_target must name as many files, but got 1 and 2"},
      {"data.train_source=[]", "data.train_source must name at least one file"},
      {"data.valid_target=[]", "data.valid_source and data.valid_target"},
      {"data.max_source_tokens=1",
       "data.max_source_tokens must be between 2 and model.max_positions = 1024, or 0 for no cut, "
       "but got 1"},
      {"data.max_target_tokens=-3", "data.max_target_tokens must be between"},
      {"data.max_target_tokens=1025", "but got 1025"},
      {"training.max_epoch=3", "max_epochs"},
      {"training.ema_decay=1", "training.ema_decay must be >= 0 and < 1, but got 1"},
      {"training.ema_decay=-0.1", "training.ema_decay must be >= 0 and < 1"},
      {"training.ema_decay=nan", "training.ema_decay must be a finite number"},
      {"training.ema_decai=0.9", "training.ema_decay"},
      {"training.best_by=bleau", "must be 'loss' or a metric, 'bleu', 'chrf'"},
      {"training.validate_metrics=[\"blue\"]", "training.validate_metrics"},
  };
  for (const auto& [assignment, wanted] : cases)
    EXPECT_THAT(message(assignment), HasSubstr(wanted)) << assignment;
}

TEST(TrainOptions, FilesOfBothSidesStandBehindPairs) {
  DataOptions data = good().data;
  EXPECT_EQ(data.documents().format, TextFormat::kText);
  data.train = {"x.jsonl", "y.jsonl"};
  data.source_key = "a.b";
  data.target_key = "c";
  const PairSources pairs = data.training_pairs();
  ASSERT_EQ(pairs.source.size(), 3U);
  EXPECT_EQ(pairs.source[0].format, TextFormat::kText);
  for (const size_t i : {1, 2}) {
    EXPECT_EQ(pairs.source[i].format, TextFormat::kJson);
    EXPECT_EQ(pairs.source[i].file, pairs.target[i].file);
    EXPECT_EQ(pairs.source[i].key, "a.b");
    EXPECT_EQ(pairs.target[i].key, "c");
    EXPECT_EQ(pairs.target[i].side, PairSide::kTarget);
  }
  EXPECT_EQ(data.validation_pairs().target.size(), 1U);
  data.source_key = data.target_key = "";
  data.stories = {"folder"};
  EXPECT_EQ(data.training_pairs().target[1].format, TextFormat::kStory);
  EXPECT_EQ(data.training_pairs().target[1].folders, data.stories);
}

TEST(TrainOptions, WhatNeedsValidationTextSaysSo) {
  for (const std::string key :
       {"training.patience",
        "training.validate_every",
        "training.validate_bleu",
        "training.validate_metrics",
        "training.best_by"}) {
    TrainConfig config = good();
    config.data.valid_source.clear();
    config.data.valid_target.clear();
    config.training.patience = key == "training.patience" ? 1 : 0;
    config.training.validate_every = key == "training.validate_every" ? 1 : 0;
    config.training.validate_bleu = key == "training.validate_bleu";
    if (key == "training.validate_metrics")
      config.training.validate_metrics = {MetricKind::kChrf};
    if (key == "training.best_by")
      config.training.best_by = "bleu";
    EXPECT_THAT(
        testing::error_of<UsageError>([&] { config.validate(); }),
        ::testing::AllOf(HasSubstr(key), HasSubstr("data.valid_source")));
  }
}

TEST(TrainOptions, CosineMayNotEndAboveItsMaximum) {
  TrainConfig config = good();
  config.schedule.kind = ScheduleKind::kCosine;
  config.schedule.warmup_updates = 0;
  EXPECT_NO_THROW(config.validate());
  config.schedule.min_learning_rate = 1;
  EXPECT_THAT(
      testing::error_of<UsageError>([&] { config.validate(); }),
      HasSubstr("schedule.min_learning_rate must be <= "));
}

TEST(TrainOptions, ASchedulesEndMustBeKnown) {
  TrainConfig config = good();
  config.schedule.kind = ScheduleKind::kLinear;
  EXPECT_NO_THROW(config.validate());
  config.training.patience = 3;
  config.training.max_updates = config.training.max_epochs = 0;
  EXPECT_THAT(
      testing::error_of<UsageError>([&] { config.validate(); }),
      HasSubstr("which needs training.max_minutes, training.max_updates or training.max_epochs"));
  config.training.max_minutes = 5;
  EXPECT_NO_THROW(config.validate());
  config.schedule.warmup_share = config.schedule.cooldown_share = 0.6;
  EXPECT_THAT(
      testing::error_of<UsageError>([&] { config.validate(); }), HasSubstr("<= 1 together"));
}

TEST(TrainOptions, TheEffectiveConfigurationReadsBackTheSame) {
  TrainConfig config = good();
  config.data.train_source = {"a b", "quote\"d", "uml\xC3\xA4ut"};
  config.data.train_target = {"x", "y", "z"};
  config.schedule.warmup_start = 1e-7;
  config.model.encoder.block = {MixerKind::kTalk, MixerKind::kLightConv};
  const Json table = write_options(config);
  const std::string file = ::testing::TempDir() + "/effective.toml";
  std::FILE* out = std::fopen(file.c_str(), "w");
  const std::string toml = to_toml(table);
  std::fwrite(toml.data(), 1, toml.size(), out);
  std::fclose(out);
  TrainConfig back;
  read_options(load_toml(file), "", back);
  EXPECT_EQ(write_options(back).dump(), table.dump());
  std::remove(file.c_str());
}

}  // namespace
}  // namespace seqconv::internal
