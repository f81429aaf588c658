#include <gmock/gmock.h>

#include <cmath>
#include <csignal>

#include "base/files.h"
#include "base/log.h"
#include "base/options.h"
#include "base/signals.h"
#include "libtorch/backend/backend.h"
#include "pipeline/perplexity.h"
#include "support/errors.h"
#include "text/line_reader.h"
#include "tiny_task.h"

namespace seqconv::internal {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// Lines that count upwards from random digits, some of them apart.
class LanguageModelRun : public testing::TinyTask {
 protected:
  LanguageModelRun() {
    const TrainConfig translation = config_;
    config_ = TrainConfig::defaults(Task::kLanguageModel);
    config_.training = translation.training;
    config_.training.label_smoothing = 0;
    config_.schedule = translation.schedule;
    config_.text.subword = Subword::kNone;
    ModelOptions& model = config_.model;
    model.dim = 32;
    model.ffn_dim = 64;
    model.dropout = model.input_dropout = 0;
    model.max_positions = 64;
    model.decoder = testing::tiny_model(MixerKind::kDynamicConv).decoder;
    config_.batching.max_tokens = 64;
    config_.data.stream.block_tokens = 12;
    write_counts("train", 120, 1);
    write_counts("valid", 21, 2);
    config_.data.train = {path("train")};
    config_.data.valid = {path("valid")};
  }

  void write_counts(const std::string& name, int lines, uint64_t seed) {
    std::string text;
    for (int line = 0; line < lines; ++line) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      const auto random = seed >> 33;
      for (uint64_t i = 0; i < 3 + random % 4; ++i)
        text += concat(i > 0 ? " " : "", (random / 7 + i) % 10);
      text += line % 10 == 9 ? "\n\n" : "\n";
    }
    folder_.write(name, text);
  }

  double validation(const std::string& output) const {
    return records(output, "validation").back().at("nll_base2");
  }

  std::string usage_error(const TrainRequest& request) {
    return testing::error_of<UsageError>([&] { train_model(request); });
  }
};

TEST_F(LanguageModelRun, EveryKindOfSamplesLearns) {
  config_.training.max_updates = 60;
  config_.training.validate_every = 60;
  for (const SampleKind kind :
       {SampleKind::kBlocks, SampleKind::kDocumentBlocks, SampleKind::kLines}) {
    config_.data.stream.samples = kind;
    const std::string name(enum_name(kind));
    train_model(request(name));
    EXPECT_LT(validation(name), 0.75 * std::log2(10)) << name;
    EXPECT_EQ(load_language_model(path(name)).stream.samples, kind);
  }
}

TEST_F(LanguageModelRun, ItsValidationIsWhatThePerplexityMeterMeasures) {
  config_.training.validate_every = 12;
  for (const SampleKind kind :
       {SampleKind::kBlocks, SampleKind::kDocumentBlocks, SampleKind::kLines}) {
    config_.data.stream.samples = kind;
    const std::string name(enum_name(kind));
    train_model(request(name));
    const LanguageSystem model = open_language_model(path(name), TorchBackends());
    PerplexityMeter meter(model, {});
    LineReader lines(path("valid"));
    for (std::string line; lines.next(line);)
      meter.add_line(line, lines.where());
    const TextCost cost = meter.finish();
    const Json last = records(name, "validation").back();
    const auto tokens = static_cast<double>(cost.tokens);
    EXPECT_EQ(last.at("target_tokens"), cost.tokens) << name;
    EXPECT_NEAR(validation(name), cost.bits / tokens, 1e-5) << name;
  }
}

TEST_F(LanguageModelRun, ResumedTheBitsAreTheSame) {
  config_.model.dropout = config_.model.input_dropout = 0.1;
  config_.model.adaptive.softmax_cutoffs = {7, 10};
  config_.model.adaptive.softmax_factor = 2;
  config_.model.adaptive.softmax_dropout = 0.1;
  config_.model.tie = Tying::kNone;
  config_.training.accumulate = 3;
  config_.training.validate_every = 5;
  config_.training.save_every = 4;
  for (const SampleKind kind :
       {SampleKind::kBlocks, SampleKind::kDocumentBlocks, SampleKind::kLines}) {
    config_.data.stream.samples = kind;
    const std::string name(enum_name(kind));
    train_model(request(name));
    TrainRequest piece = request(name + "-pieces");
    for (const auto& [update, micro_batch] :
         std::vector<std::pair<int64_t, int64_t>>{{0, 1}, {5, 0}, {8, 1}}) {
      const auto stop = [&](const RunSetup&, const Position& position) {
        if (position.update == update && position.micro_batch == micro_batch)
          set_stop_signal(SIGTERM);
      };
      EXPECT_THROW(train(piece, stop), Interrupted) << name << update;
      set_stop_signal(0);
      piece.resume = true;
    }
    train_model(piece);
    for (const char* file : {"model.safetensors", "training/state.safetensors"})
      EXPECT_TRUE(
          testing::tensors_of(path(name) / file) ==
          testing::tensors_of(path(name + "-pieces") / file))
          << name << ' ' << file;
    EXPECT_GT(records(name, "train").back()["epoch"], 1);
  }
}

TEST_F(LanguageModelRun, BeginsWithAnotherModel) {
  train_model(request("base"));
  config_.text.min_count = 3;   // not used: the text comes with the model
  config_.text.joined = false;  // means nothing here
  config_.schedule.learning_rate = config_.schedule.warmup_start = 1e-30;
  config_.data.stream.block_tokens = 20;
  TrainRequest tune = request("tuned");
  tune.init_from = path("base");
  const Json keys = write_options(config_.text);
  for (const auto& [key, value] : keys.items())
    tune.named_text.insert(key);
  train_model(tune);
  const auto base = load_language_model(path("base"));
  const auto tuned = load_language_model(path("tuned"));
  const auto values = base.model->named_parameters();
  for (const auto& item : tuned.model->named_parameters())
    EXPECT_TRUE(item.value().allclose(values[item.key()], 0, 1e-25)) << item.key();
  EXPECT_EQ(tuned.stream.block_tokens, 20);
  config_.model.dim = 64;
  tune = request("other");
  tune.init_from = path("base");
  EXPECT_THAT(
      usage_error(tune), HasSubstr("model.dim is 64 in the configuration and 32 in that model"));
}

TEST_F(LanguageModelRun, DoesNotBeginWithATranslationModel) {
  TrainConfig translation;
  write_pairs("pairs", 20, 3, /*reversed=*/true);
  translation.data.train_source = {path("pairs.source")};
  translation.data.train_target = {path("pairs.target")};
  translation.text = config_.text;
  translation.model = testing::tiny_model(MixerKind::kDynamicConv);
  translation.training = config_.training;
  translation.training.max_updates = 1;
  TrainRequest other = request("translation");
  other.config = translation;
  train_model(other);
  TrainRequest tune = request("tuned");
  tune.init_from = path("translation");
  EXPECT_THAT(
      testing::error_of([&] { train_model(tune); }),
      AllOf(HasSubstr("must hold a language model"), HasSubstr("seqconv translate and score")));
}

TEST_F(LanguageModelRun, TrainsByMomentumAndCosine) {
  config_.optimizer.kind = OptimizerKind::kNag;
  config_.optimizer.clip_norm = 0.1;
  config_.schedule.kind = ScheduleKind::kCosine;
  config_.schedule.learning_rate = 0.5;
  config_.schedule.warmup_updates = 10;
  config_.schedule.period = 50;
  config_.training.max_updates = 60;
  config_.training.validate_every = 10;
  train_model(request("run"));
  const auto validations = records("run", "validation");
  EXPECT_LT(
      validations.back().at("nll_base2").get<double>(),
      0.9 * validations.front().at("nll_base2").get<double>());
}

TEST_F(LanguageModelRun, ADryRunWritesNothing) {
  TrainRequest dry = request("run");
  dry.dry_run = true;
  ::testing::internal::CaptureStderr();
  set_log_level(LogLevel::kInfo);
  train_model(dry);
  const std::string said = ::testing::internal::GetCapturedStderr();
  set_log_level(LogLevel::kError);
  EXPECT_FALSE(std::filesystem::exists(path("run")));
  for (const char* part :
       {"training data: ",
        " tokens (0 unknown) in 1 sequence of 132 lines (12 blank",
        "validation data: ",
        "in 1 sequence of 23 lines (2 blank",
        "vocabulary 16 symbols",
        "parameters: ",
        "an epoch has ",
        "at most 12",
        "dry run: nothing was written"})
    EXPECT_THAT(said, HasSubstr(part));
}

TEST_F(LanguageModelRun, AWordThatCannotBeLearnedIsToldWithFileAndLine) {
  folder_.write("valid", "1 2 3\n4 eleven 5\n");
  EXPECT_THAT(
      testing::error_of([&] { train_model(request("run")); }),
      HasSubstr(concat(
          path("valid").string(), ":2: the symbol 'eleven' is not in the model's vocabulary")));
}

TEST_F(LanguageModelRun, AnotherCutOfTheTextIsNotTheSameRun) {
  train_model(request("run"));
  config_.training.max_updates = 14;
  std::filesystem::rename(path("train"), path("moved"));
  config_.data.train = {path("moved")};
  TrainRequest again = request("run");
  again.resume = true;
  EXPECT_NO_THROW(train_model(again));
  again.config.training.max_updates = 16;
  again.config.data.stream.block_tokens = 13;
  EXPECT_THAT(usage_error(again), HasSubstr("cannot resume: data.block_tokens was 12"));
  again.config.data.stream.block_tokens = 12;
  again.config.data.stream.samples = SampleKind::kLines;
  EXPECT_THAT(usage_error(again), HasSubstr("cannot resume: data.samples was \"blocks\""));
  again.config.data.stream.samples = SampleKind::kBlocks;
  write_counts("moved", 120, 9);
  EXPECT_THAT(
      testing::error_of([&] { train_model(again); }),
      HasSubstr("the content of data.train is not what the run began with"));
}

TEST_F(LanguageModelRun, OptionsThatContradictEachOtherNameTheirKey) {
  const auto message = [&](const std::vector<std::string>& assignments) {
    Json table = write_options(config_);
    for (const std::string& assignment : assignments)
      apply_override(table, assignment);
    return testing::error_of<UsageError>([&] { read_train_config(table); });
  };
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"data.train=[]"}, "data.train must name at least one file"},
      {{"data.train_source=[\"a\"]"}, "data.train_source or _target"},
      {{"data.valid_target=[\"a\"]"}, "data.valid_source or _target"},
      {{"data.block_tokens=0"}, "data.block_tokens must be >= 1, but got 0"},
      {{"data.samples=words"}, "data.samples must be 'blocks', "},
      {{"data.block_tokens=65", "model.positions=learned"},
       "data.block_tokens must be <= model.max_positions = 64"},
      {{"data.block_tokens=33",
        "model.decoder.positions=learned",
        "model.decoder.max_positions=32"},
       "data.block_tokens must be <= model.decoder.max_positions = 32"},
      {{"decoding.beam=3"}, "[decoding] is for translation"},
      {{"training.guided_alignment=1"}, "training.guided_alignment is for translation"},
      {{"training.validate_bleu=true"}, "training.validate_bleu is for"},
      {{"training.best_by=bleu"}, "training.best_by = \"bleu\" is for"},
      {{"training.validate_metrics=[\"chrf\"]"}, "training.validate_metrics is for"},
      {{"training.label_smoothing=0.1", "model.adaptive.softmax_cutoffs=[8]", "model.tie=none"},
       "training.label_smoothing must be 0 with an adaptive softmax"},
      {{"model.norm=post"}, "model.norm must be \"pre\""},
      {{"model.encoder.layers=3"}, "model.encoder is given"},
      {{"data.valid=[]", "training.patience=2"},
       "training.patience needs validation text: set data.valid"},
      {{"task=translation", "data.train=[]", "data.valid=[]"},
       "data.train_source must name at least one file"},
      {{"task=translation"}, "data.train is a language model's text"},
      {{"task=translation", "data.train_source=[\"a\"]", "data.train_target=[\"b\"]"},
       "data.train is a language model's text"},
      {{"task=parsing"}, "task must be 'translation' or 'language_model'"},
  };
  for (const auto& [assignments, wanted] : cases)
    EXPECT_THAT(message(assignments), HasSubstr(wanted)) << assignments[0];
  EXPECT_NO_THROW(config_.validate());
}

}  // namespace
}  // namespace seqconv::internal
