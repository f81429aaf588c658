#include <gmock/gmock.h>

#include "base/files.h"
#include "base/log.h"
#include "base/options.h"
#include "support/errors.h"
#include "tiny_task.h"

namespace seqconv::internal {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class FineTuningRun : public testing::TinyTask {};

TEST_F(FineTuningRun, BeginsWithTheOtherModel) {
  train_model(request("base"));
  write_pairs("train", 80, 5, /*reversed=*/false);
  config_.schedule.learning_rate = 1e-30;  // so that nothing moves
  config_.schedule.warmup_start = 1e-30;
  config_.text.min_count = 3;  // not used: the text comes with the model
  config_.model.dropout = 0.3;
  TrainRequest tune = request("tuned");
  tune.init_from = path("base");
  train_model(tune);
  const LoadedModel base = load_model(path("base"));
  const LoadedModel tuned = load_model(path("tuned"));
  const auto values = base.model->named_parameters();
  // Only what was exactly zero can move by 1e-30.
  for (const auto& item : tuned.model->named_parameters())
    EXPECT_TRUE(item.value().allclose(values[item.key()], 0, 1e-25))
        << item.key() << " moved by "
        << (item.value() - values[item.key()]).abs().max().item<double>();
  EXPECT_EQ(
      Json::parse(read_file(path("base") / "config.json"))["text"],
      Json::parse(read_file(path("tuned") / "config.json"))["text"]);
  tune.init_from = RunFolder{path("base")}.checkpoint(12);
  tune.output = path("from-checkpoint");
  EXPECT_NO_THROW(train_model(tune));
  config_.model.dim = 64;
  TrainRequest other = request("other");
  other.init_from = path("base");
  EXPECT_THAT(
      testing::error_of<UsageError>([&] { train_model(other); }),
      HasSubstr("model.dim is 64 in the configuration and 32 in that model"));
}

TEST_F(FineTuningRun, ATextThatTheConfigurationWantsOtherwiseIsRefused) {
  train_model(request("base"));
  TrainRequest tune = request("tuned");
  tune.init_from = path("base");
  const auto refusal = [&](const TrainRequest& request) {
    return testing::error_of<UsageError>([&] { train_model(request); });
  };
  TrainRequest lower = tune;
  lower.config.text.lowercase = true;
  lower.named_text = {"lowercase"};
  EXPECT_THAT(
      refusal(lower),
      HasSubstr("text.lowercase is true in the configuration and false in that model"));
  TrainRequest pieces = tune;
  pieces.config.text.subword = Subword::kSentencePiece;
  pieces.named_text = {"subword"};
  EXPECT_THAT(
      refusal(pieces),
      HasSubstr(
          "text.subword is \"sentencepiece\" in the configuration and \"none\" in that model"));
  pieces.named_text = {};  // a default that nobody asked for
  pieces.output = path("default");
  EXPECT_NO_THROW(train_model(pieces));
  TrainRequest other = tune;
  other.config.text.target_dictionary = folder_.write("other.txt", "9 4\n8 3\n");
  EXPECT_THAT(
      refusal(other),
      AllOf(
          HasSubstr("text.target_dictionary = '"),
          HasSubstr("other.txt' is not its vocabulary: the symbol of id")));
  TrainRequest same = tune;
  same.output = path("same");
  same.config.text.source_dictionary = path("base") / "dict.txt";
  EXPECT_NO_THROW(train_model(same));
}

TEST_F(FineTuningRun, TheModelsOwnConfigurationIsTakenWhateverItsText) {
  join_digits("train.source");
  std::map<std::string, TextOptions> texts;
  TextOptions words;
  words.subword = Subword::kNone;
  words.min_count = 2;
  texts["words"] = words;
  texts["characters"].subword = Subword::kCharacters;
  texts["bytes"].subword = Subword::kBytes;
  texts["bpe"].subword = Subword::kBpe;
  texts["bpe"].subword_size = 3;
  texts["unsplit"] = texts["bpe"];
  texts["unsplit"].subword_fallback = false;
  TextOptions pieces;
  pieces.subword_size = 280;
  pieces.sentencepiece_byte_fallback = true;
  pieces.sentencepiece_user_symbols = {"<year>"};
  texts["pieces"] = pieces;
  TextOptions moses = words;
  moses.tokenizer = Tokenizer::kMoses;
  moses.source_language = "de";
  moses.target_language = "en";
  moses.moses_escape = moses.lowercase = true;
  texts["moses"] = moses;
  config_.training.max_updates = 1;
  texts["given"].subword = Subword::kBpe;
  texts["given"].bpe_codes = folder_.write("codes", "\uFEFF#version: 0.2\r\n1 2</w>");
  for (const auto& [name, text] : texts) {
    SCOPED_TRACE(name);
    config_.text = text;
    train_model(request(name));
    TrainRequest tune = request(name + "-tuned");
    tune.init_from = path(name);
    // As the run wrote it down: every key is named.
    const Json keys = write_options(text);
    for (const auto& [key, value] : keys.items())
      tune.named_text.insert(key);
    EXPECT_NO_THROW(train_model(tune));
  }
}

TEST_F(FineTuningRun, CodesOfAnotherModelAreRefused) {
  join_digits("train.source");
  config_.text.subword = Subword::kBpe;
  config_.text.subword_size = 3;
  train_model(request("base"));
  TrainRequest tune = request("tuned");
  tune.init_from = path("base");
  tune.config.text.bpe_codes = path("base") / "bpe.codes";
  EXPECT_NO_THROW(train_model(tune));
  tune.output = path("other");
  tune.config.text.bpe_codes = folder_.write("codes", "#version: 0.2\n1 2\n");
  EXPECT_THAT(
      testing::error_of<UsageError>([&] { train_model(tune); }),
      HasSubstr("codes' is another than the model's own"));
}

TEST_F(FineTuningRun, ASideOfUnknownSymbolsIsWarnedOfWithItsShare) {
  config_.schedule.warmup_updates = 4;  // more would be warned of
  train_model(request("base"));
  folder_.write("other", "a b c\n");
  folder_.write("half", "a 1\n");
  folder_.write("known", "1 2\n");
  const auto warnings = [&](const char* source, const char* target) {
    config_.data.train_source = {path(source)};
    config_.data.train_target = {path(target)};
    TrainRequest tune = request(concat(source, "-", target));
    tune.init_from = path("base");
    set_log_level(LogLevel::kWarning);
    ::testing::internal::CaptureStderr();
    train_model(tune);
    set_log_level(LogLevel::kError);
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(
      warnings("other", "known"),
      HasSubstr(
          "training data: the source side: 3 of 3 symbols (100 %) are not in the vocabulary"));
  EXPECT_THAT(warnings("known", "half"), HasSubstr("the target side: 1 of 2 symbols (50 %)"));
  EXPECT_EQ(warnings("known", "known"), "");
}

TEST_F(FineTuningRun, Resumes) {
  train_model(request("base"));
  config_.text.min_count = 2;  // not used, but it must not forbid resuming
  TrainRequest tune = request("tuned");
  tune.init_from = path("base");
  tune.config.training.max_updates = 3;
  train_model(tune);
  tune.init_from.clear();
  tune.resume = true;
  tune.config.training.max_updates = 5;
  EXPECT_NO_THROW(train_model(tune));
  EXPECT_EQ(records("tuned", "train").size(), 5u);
}

}  // namespace
}  // namespace seqconv::internal
