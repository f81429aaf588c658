#include <ATen/ops/full_like.h>
#include <gmock/gmock.h>

#include <limits>

#include "base/average_safetensors.h"
#include "base/files.h"
#include "base/log.h"
#include "base/options.h"
#include "base/safetensors.h"
#include "support/errors.h"
#include "support/file_size_limit.h"
#include "tiny_task.h"

namespace seqconv::internal {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class Trainer : public testing::TinyTask {
 protected:
  fs::path checkpoints(const std::string& output) const {
    return path(output) / "training" / "checkpoints";
  }

  std::vector<std::string> checkpoint_names(const std::string& output) const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(checkpoints(output)))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
};

TEST_F(Trainer, TheFolderHoldsWhatTheDocumentationSays) {
  train_model(request("run"));
  for (const char* file :
       {"config.json",
        "model.safetensors",
        "training/state.safetensors",
        "training/config.toml",
        "training/metrics.jsonl",
        "training/checkpoints/update-00000012.safetensors"})
    EXPECT_TRUE(fs::is_regular_file(path("run") / file)) << file;
  EXPECT_NO_THROW(load_model(path("run")));
  EXPECT_NO_THROW(load_model(checkpoints("run") / "update-00000012.safetensors"));
  TrainConfig back;
  read_options(load_toml(path("run") / "training" / "config.toml"), "", back);
  EXPECT_EQ(write_options(back), write_options(config_));
}

TEST_F(Trainer, TheSameSeedGivesTheSameModel) {
  train_model(request("one"));
  train_model(request("two"));
  config_.training.seed = 2;
  train_model(request("three"));
  const auto model = [&](const std::string& name) {
    return read_file(path(name) / "model.safetensors");
  };
  EXPECT_TRUE(model("one") == model("two"));
  EXPECT_FALSE(model("one") == model("three"));
}

TEST_F(Trainer, EveryRecordHasItsKeys) {
  config_.training.max_updates = 0;
  config_.training.max_epochs = 2;
  config_.training.log_every = 3;
  config_.training.validate_bleu = true;
  train_model(request("run"));
  const auto starts = records("run", "start");
  ASSERT_EQ(starts.size(), 1u);
  EXPECT_EQ(starts[0]["train_samples"], 120);
  EXPECT_EQ(starts[0]["valid_samples"], 20);
  EXPECT_EQ(starts[0]["resumed"], false);
  EXPECT_EQ(starts[0]["config"], write_options(config_));
  EXPECT_GT(starts[0]["parameters"], 1000);
  const auto trains = records("run", "train");
  const int64_t batches = starts[0]["batches_per_epoch"];
  EXPECT_EQ(static_cast<int64_t>(trains.size()), 2 * batches / 3);
  for (size_t i = 0; i < trains.size(); ++i) {
    EXPECT_EQ(trains[i]["update"], 3 * (i + 1));
    for (const char* key :
         {"epoch",
          "loss_base2",
          "nll_base2",
          "perplexity",
          "learning_rate",
          "gradient_norm",
          "target_tokens",
          "source_tokens",
          "sentences",
          "skipped_updates",
          "target_tokens_per_second",
          "elapsed_seconds"})
      EXPECT_TRUE(trains[i].at(key).is_number()) << key;
  }
  // The first three updates: rates 1e-7 + n/20 of the way to 3e-3, n = 2.
  EXPECT_DOUBLE_EQ(trains[0]["learning_rate"].get<double>(), 1e-7 + 2 * (3e-3 - 1e-7) / 20);
  const auto validations = records("run", "validation");
  ASSERT_EQ(validations.size(), 2u);
  EXPECT_EQ(validations[0]["best"], true);
  EXPECT_EQ(validations[0]["update"], batches);
  EXPECT_GT(validations[0]["bleu"], 0);
  EXPECT_EQ(
      validations[0]["signatures"]["bleu"],
      "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:seqconv-0.1.0");
  EXPECT_NEAR(
      validations[0]["perplexity"].get<double>(),
      std::exp2(validations[0]["nll_base2"].get<double>()),
      1e-9);
  ASSERT_EQ(records("run", "end").size(), 1u);
  EXPECT_EQ(records("run", "end")[0]["reason"], "max_epochs");
}

TEST_F(Trainer, ValidationTextWithoutBlanksIsWarnedOfWhereBleuIsMeasured) {
  std::string japanese;
  for (int line = 0; line < 20; ++line)
    japanese += "昨日の会議でこの問題について話しました。\n";
  folder_.write("valid.target", japanese);
  config_.training.max_updates = 1;
  const auto warnings = [&](MetricKind metric, const std::string& run) {
    config_.training.validate_metrics = {metric};
    set_log_level(LogLevel::kWarning);
    ::testing::internal::CaptureStderr();
    train_model(request(run));
    set_log_level(LogLevel::kError);
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(
      warnings(MetricKind::kBleu, "bleu"),
      HasSubstr("the validation text is Japanese, which has no blanks"));
  EXPECT_THAT(warnings(MetricKind::kChrf, "chrf"), ::testing::Not(HasSubstr("blanks")));
}

TEST_F(Trainer, PairsThatAreLeftOutCountInNoScore) {
  config_.training.max_updates = 4;
  config_.training.validate_metrics = {MetricKind::kBleu, MetricKind::kTer, MetricKind::kExact};
  train_model(request("few"));
  std::string source = read_file(path("valid.source"));
  std::string target = read_file(path("valid.target"));
  for (int line = 0; line < 10; ++line) {
    source += "1 2 3\n\n";  // one with an empty target, one with an empty source
    target += "\n3 2 1\n";
  }
  std::string words;
  for (int word = 0; word < 100; ++word)
    words += " 7";
  folder_.write("valid.source", source + words + "\n");
  folder_.write("valid.target", target + "7 7\n");
  train_model(request("more"));
  const Json few = records("few", "validation").back();
  const Json more = records("more", "validation").back();
  for (const char* key : {"loss_base2", "bleu", "ter", "exact"})
    EXPECT_EQ(few[key], more[key]) << key;
  EXPECT_GT(few["ter"], 0);
}

TEST_F(Trainer, AMetricThatSeesNothingIsRefusedBeforeAnythingIsWritten) {
  std::string russian;
  for (int line = 0; line < 20; ++line)
    russian += "собака бежит по траве\n";
  folder_.write("valid.target", russian);
  config_.training.max_updates = 1;
  config_.training.best_by = "rougeL";
  const std::string fault = testing::error_of<UsageError>([&] { train_model(request("run")); });
  EXPECT_THAT(fault, HasSubstr("training.best_by = 'rougeL' cannot tell"));
  EXPECT_THAT(fault, HasSubstr("metrics.rouge.tokenizer = 'unicode'"));
  EXPECT_FALSE(fs::exists(path("run") / "config.json"));
  config_.metrics.rouge.tokenizer = RougeWords::kUnicode;
  train_model(request("run"));
  EXPECT_THAT(
      records("run", "validation").back()["signatures"]["rougeL"].get<std::string>(),
      HasSubstr("|tok:unicode|"));
  // Four words a line are none too few for BLEU, three are.
  folder_.write("valid.target", [] {
    std::string short_lines;
    for (int line = 0; line < 20; ++line)
      short_lines += "1 2 3\n";
    return short_lines;
  }());
  config_.training.best_by = "bleu";
  EXPECT_THAT(
      testing::error_of<UsageError>([&] { train_model(request("short")); }),
      HasSubstr("even the references of the validation text score 0"));
}

TEST_F(Trainer, HowTheMetricOfTheBestIsComputedStaysWhereARunGoesOn) {
  config_.training.best_by = "chrf";
  config_.training.max_updates = 2;
  train_model(request("run"));
  TrainRequest again = request("run");
  again.resume = true;
  again.config.training.max_updates = 4;
  again.config.metrics.bleu.order = 2;  // not what the run chooses by
  EXPECT_NO_THROW(train_model(again));
  again.config.metrics.chrf.word_order = 2;
  EXPECT_THAT(
      testing::error_of<UsageError>([&] { train_model(again); }),
      HasSubstr("metrics.chrf.word_order was 0"));
}

TEST_F(Trainer, SmallBatchesSummedAreOneBatchOfTheirUnion) {
  // Without dropout the mean over tokens is all that matters.
  config_.training.max_updates = 1;
  config_.training.validate_every = 0;
  config_.schedule.warmup_start = 1e-3;
  config_.batching.max_tokens = 100000;
  config_.training.accumulate = 1;
  train_model(request("one"));
  EXPECT_EQ(records("one", "start")[0]["batches_per_epoch"], 1);
  config_.batching.max_tokens = 100;
  config_.training.accumulate = 1000;  // the epoch ends the update
  train_model(request("many"));
  EXPECT_GT(records("many", "start")[0]["batches_per_epoch"], 5);
  const auto one = records("one", "train").at(0);
  const auto many = records("many", "train").at(0);
  EXPECT_EQ(one["update"], many["update"]);
  EXPECT_EQ(one["target_tokens"], many["target_tokens"]);
  for (const char* key : {"loss_base2", "nll_base2", "gradient_norm"}) {
    const double value = one[key];
    EXPECT_NEAR(value, many[key].get<double>(), 2e-5 * value) << key;
  }
}

TEST_F(Trainer, TheLossOfTheFirstUpdateIsTheModelsOwn) {
  config_.training.max_updates = 1;
  config_.batching.max_tokens = 100000;
  train_model(request("run"));
  const TrainRequest fresh = request("other");
  RunSetup setup = set_up_run(fresh);
  const Batcher batches(setup.data.train.samples, config_.batching, 1);
  const auto loss = validation_loss(
      *setup.task->model(), batches, {.smoothing = 0.1}, *setup.communicator, ValidationStop());
  EXPECT_NEAR(records("run", "train")[0]["loss_base2"].get<double>(), loss.loss_base2, 1e-5);
}

TEST_F(Trainer, AStopIsHeardBetweenTheStepsOfAValidationsSearch) {
  const TrainRequest fresh = request("run");
  RunSetup setup = set_up_run(fresh);
  int questions = 0;
  const ValidationStop stop{
      .asked = [&] { return ++questions > 3; }, .agree = [] { fail("stopped"); }};
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(
      testing::error_of(
          [&] { setup.task->validation_scores({MetricKind::kBleu}, *setup.communicator, stop); }),
      "stopped");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_GT(questions, 3);
}

TEST_F(Trainer, ASkippedUpdateLeavesParametersAndOptimiserAlone) {
  torch::manual_seed(1);
  const TrainRequest fresh = request("run");
  RunSetup setup = set_up_run(fresh);
  FlatParameters parameters(*setup.task->model());
  Optimizer optimizer(config_.optimizer, parameters.values());
  const Batcher batches(setup.data.train.samples, config_.batching, 1);
  const auto update = [&](bool broken) {
    UpdateSums sums;
    accumulate_batch(*setup.task->model(), batches.batch(0), {}, {.seed = 1}, sums);
    sums.broken = broken ? 1 : 0;
    return apply_update(parameters, optimizer, {.learning_rate = 0.01}, sums);
  };
  EXPECT_FALSE(update(/*broken=*/false).skipped);
  const at::Tensor values = parameters.values().clone();
  const at::Tensor moment = optimizer.tensors().at("first_moment").clone();
  EXPECT_TRUE(update(/*broken=*/true).skipped);
  EXPECT_TRUE(parameters.values().equal(values));
  EXPECT_TRUE(optimizer.tensors().at("first_moment").equal(moment));
  EXPECT_EQ(optimizer.scalars().steps, 1);
  EXPECT_EQ(parameters.gradients().count_nonzero().item<int64_t>(), 0);
  EXPECT_FALSE(update(/*broken=*/false).skipped);
  EXPECT_FALSE(parameters.values().equal(values));
}

TEST_F(Trainer, ARunThatEndsWithBrokenParametersIsAnErrorAndSavesNone) {
  config_.training.max_updates = 6;
  config_.training.save_every = 4;
  config_.training.validate_bleu = true;
  const auto spoil = [&](const RunSetup& setup, const Position& position) {
    at::NoGradGuard no_grad;
    if (position.update == 5)  // no sentence needs the row
      setup.task->model()->parameters()[0][0].fill_(std::numeric_limits<float>::quiet_NaN());
  };
  EXPECT_THAT(
      testing::error_of([&] { train(request("run"), spoil); }),
      HasSubstr("training has diverged: after its last update, 6, parameters or the optimizer's "
                "state are NaN or infinite"));
  EXPECT_NO_THROW(load_model(path("run")));
  EXPECT_THAT(checkpoint_names("run"), ::testing::ElementsAre("update-00000004.safetensors"));
}

TEST_F(Trainer, TheLastCheckpointsAreKept) {
  config_.training.save_every = 2;
  config_.training.keep_last = 3;
  train_model(request("run"));
  EXPECT_THAT(
      checkpoint_names("run"),
      ::testing::ElementsAre(
          "update-00000008.safetensors",
          "update-00000010.safetensors",
          "update-00000012.safetensors"));
  config_.training.keep_last = 0;
  train_model(request("none"));
  EXPECT_THAT(checkpoint_names("none"), ::testing::IsEmpty());
  EXPECT_NO_THROW(load_model(path("none")));
}

TEST_F(Trainer, TheBestModelIsTheOneWithTheBestMeasure) {
  config_.training.validate_every = 2;
  config_.training.save_every = 2;
  config_.training.keep_last = 100;
  config_.schedule.learning_rate = 0.3;  // so high that it gets worse again
  config_.schedule.warmup_updates = 1;
  config_.training.max_updates = 20;
  for (const auto& [best_by, key, sign] :
       {std::tuple{"loss", "loss_base2", -1}, {"chrf", "chrf", 1}}) {
    config_.training.best_by = best_by;
    train_model(request(best_by));
    std::optional<double> best;
    int64_t best_update = 0;
    for (const Json& record : records(best_by, "validation")) {
      const double measure = sign * record[key].get<double>();
      EXPECT_EQ(record["best"], !best || measure > best);
      if (!best || measure > best) {
        best = measure;
        best_update = record["update"];
      }
    }
    EXPECT_LT(best_update, 20);
    EXPECT_EQ(
        SafetensorsReader(path(best_by) / "model.safetensors").metadata().at("update"),
        std::to_string(best_update));
    EXPECT_TRUE(
        read_file(path(best_by) / "model.safetensors") ==
        read_file(RunFolder{path(best_by)}.checkpoint(best_update)));
  }
}

TEST_F(Trainer, WithoutGainTrainingStopsEarly) {
  config_.training.max_updates = 0;
  config_.training.patience = 3;
  config_.training.validate_every = 1;
  config_.training.best_by = "bleu";
  config_.schedule.learning_rate = 1e-30;  // nothing is learned
  config_.schedule.warmup_start = 1e-30;
  train_model(request("run"));
  EXPECT_EQ(records("run", "validation").size(), 4u);
  EXPECT_EQ(records("run", "end").at(0)["reason"], "patience");
}

TEST_F(Trainer, WithoutValidationTextTheLastModelIsTheModel) {
  config_.data.valid_source.clear();
  config_.data.valid_target.clear();
  train_model(request("run"));
  EXPECT_TRUE(records("run", "validation").empty());
  EXPECT_EQ(SafetensorsReader(path("run") / "model.safetensors").metadata().at("update"), "12");
}

TEST_F(Trainer, CheckpointsOfARunCanBeAveraged) {
  config_.training.save_every = 6;
  train_model(request("run"));
  const RunFolder folder{path("run")};
  const auto mean = folder.root / "mean.safetensors";
  average_safetensors({folder.checkpoint(6), folder.checkpoint(12)}, mean, {});
  const LoadedModel six = load_model(folder.checkpoint(6));
  const LoadedModel twelve = load_model(folder.checkpoint(12));
  const LoadedModel between = load_model(mean);
  const auto a = six.model->named_parameters();
  const auto b = twelve.model->named_parameters();
  for (const auto& item : between.model->named_parameters())
    EXPECT_TRUE(item.value().allclose((a[item.key()] + b[item.key()]) / 2, 1e-6, 1e-8))
        << item.key();
}

TEST_F(Trainer, ADryRunWritesNothing) {
  TrainRequest dry = request("run");
  dry.dry_run = true;
  ::testing::internal::CaptureStderr();
  set_log_level(LogLevel::kInfo);
  train_model(dry);
  const std::string said = ::testing::internal::GetCapturedStderr();
  set_log_level(LogLevel::kError);
  EXPECT_FALSE(fs::exists(path("run")));
  EXPECT_THAT(said, HasSubstr("training data: 120 pairs of 120"));
  EXPECT_THAT(said, HasSubstr("validation data: 20 pairs of 20"));
  EXPECT_THAT(said, HasSubstr("parameters: "));
  EXPECT_THAT(said, HasSubstr("an epoch has "));
  EXPECT_THAT(said, HasSubstr("at most 12"));
  EXPECT_THAT(said, HasSubstr("memory, roughly: "));
  EXPECT_THAT(
      said,
      ::testing::ContainsRegex(
          "speed, by [0-9]+ updates of a scratch model: [0-9]+ target tokens/s, [0-9.]+ updates a "
          "minute\n"));
  EXPECT_THAT(
      said,
      ::testing::ContainsRegex("the run will have about 12 updates, [0-9.]+ epochs, and take "
                               "0:0[0-9]; 12 updates \\(100 %\\) are warm-up"));
  EXPECT_THAT(said, Not(HasSubstr("train  epoch"))) << "of the scratch model";
  EXPECT_THAT(said, HasSubstr("dry run: nothing was written"));
}

TEST_F(Trainer, AFullDiskStopsTheRunAndTheLastStateStays) {
  config_.training.max_updates = 4;
  train_model(request("run"));
  const std::string best = read_file(path("run") / "model.safetensors");
  config_.training.max_updates = 8;
  config_.training.save_every = 2;
  TrainRequest more = request("run");
  more.resume = true;
  {
    const testing::FileSizeLimit limit(fs::file_size(path("run") / "model.safetensors") / 2);
    EXPECT_THAT(
        testing::error_of([&] { train_model(more); }),
        ::testing::AllOf(HasSubstr("cannot write '"), HasSubstr("File too")));
  }
  EXPECT_EQ(read_state(path("run") / "training" / "state.safetensors").position.update, 4);
  EXPECT_TRUE(best == read_file(path("run") / "model.safetensors"));
  EXPECT_NO_THROW(train_model(more));  // with room again it goes on
  EXPECT_EQ(records("run", "train").size(), 8u);
}

}  // namespace
}  // namespace seqconv::internal
