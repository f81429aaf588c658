#include <gmock/gmock.h>

#include "base/files.h"
#include "support/errors.h"
#include "tiny_task.h"

namespace seqconv::internal {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class TrainerErrors : public testing::TinyTask {
 protected:
  std::string message(const TrainRequest& request) {
    return testing::error_of([&] { train_model(request); });
  }
};

TEST_F(TrainerErrors, AMissingFileIsNamedWithItsKeyBeforeAnythingIsWritten) {
  config_.data.valid_target = {path("absent")};
  EXPECT_THAT(
      message(request("run")),
      AllOf(
          HasSubstr("data.valid_target: cannot read"),
          HasSubstr("absent"),
          HasSubstr("No such file")));
  EXPECT_FALSE(std::filesystem::exists(path("run")));
}

TEST_F(TrainerErrors, APrecisionThatTheDeviceLacksIsRefused) {
  config_.training.device = "cpu";
  config_.training.precision = Precision::kFloat16;
  EXPECT_THAT(
      testing::error_of<UsageError>([&] { train_model(request("run")); }),
      AllOf(
          HasSubstr("training.precision is \"float16\", but the model is trained on the CPU, which "
                    "has float32 and bfloat16"),
          HasSubstr("or training.device to a CUDA device")));
  EXPECT_FALSE(std::filesystem::exists(path("run")));
}

TEST_F(TrainerErrors, AFolderInPlaceOfAFileIsRefused) {
  config_.data.train_source = {folder_.path()};
  EXPECT_THAT(
      message(request("run")), AllOf(HasSubstr("data.train_source: "), HasSubstr("folder")));
}

TEST_F(TrainerErrors, UnequalLineCountsAreToldWithBothCounts) {
  folder_.write("short", "1 2\n3 4\n");
  config_.data.valid_target = {path("short")};
  EXPECT_THAT(message(request("run")), AllOf(HasSubstr("20"), HasSubstr("2"), HasSubstr("short")));
}

TEST_F(TrainerErrors, AnEmptyCorpusIsRefused) {
  folder_.write("empty", "");
  config_.data.train_source = config_.data.train_target = {path("empty")};
  EXPECT_NE(message(request("run")), "");
}

TEST_F(TrainerErrors, InvalidTextIsToldWithFileAndLine) {
  folder_.write("bad", "1 2\n3 \xFF\n");
  folder_.write("good", "1 2\n3 4\n");
  config_.data.train_source = {path("bad")};
  config_.data.train_target = {path("good")};
  EXPECT_THAT(message(request("run")), HasSubstr("bad:2"));
}

TEST_F(TrainerErrors, ADamagedConfigurationOfAResumedRunIsNamed) {
  train_model(request("run"));
  TrainRequest again = request("run");
  again.resume = true;
  const std::string config = path("run") / "config.json";
  const std::string whole = read_file(config);
  Json without = Json::parse(whole);
  without.erase("text");
  for (const std::string& damaged :
       {whole.substr(0, whole.size() / 2),
        std::string("[]"),
        std::string("{\"text\": \"\xFF\"}"),
        without.dump()}) {
    write_file_atomically(config, damaged);
    EXPECT_THAT(message(again), HasSubstr(config + ": ")) << damaged;
  }
  std::filesystem::remove(config);
  EXPECT_THAT(message(again), HasSubstr("has no config.json"));
}

TEST_F(TrainerErrors, ARunAmongTheFilesOfAnotherIsRefused) {
  train_model(request("run"));
  const auto refused = [&] {
    for (const char* output : {"run/training", "run/training/checkpoints/x"})
      EXPECT_THAT(
          testing::error_of<UsageError>([&] { train_model(request(output)); }),
          HasSubstr("lies among the files of another training"));
  };
  refused();
  // Nor where a run stands already.
  for (const char* lock : {"training/lock", "checkpoints/x/training/lock"}) {
    const auto file = folder_.path() / "run" / "training" / lock;
    create_folder(file.parent_path());
    write_file_atomically(file, "");
  }
  refused();
  EXPECT_NO_THROW(train_model(request("run/tuned")));
}

TEST_F(TrainerErrors, AnOutputFolderThatCannotBeIsAnError) {
  folder_.write("file", "");
  EXPECT_THAT(
      message(request("file/run")),
      AllOf(HasSubstr("cannot create folder"), HasSubstr("file/run")));
  TrainRequest dry = request("file/run");
  dry.dry_run = true;
  EXPECT_THAT(message(dry), HasSubstr("cannot create folder"));
  TrainRequest none = request("run");
  none.output.clear();
  EXPECT_THAT(message(none), HasSubstr("--output"));
}

TEST_F(TrainerErrors, AModelIsNeverOverwritten) {
  config_.training.max_updates = 1;
  train_model(request("run"));
  const std::string model = read_file(path("run") / "model.safetensors");
  config_.training.seed = 5;
  EXPECT_THAT(
      testing::error_of<UsageError>([&] { train_model(request("run")); }),
      AllOf(HasSubstr("already holds a model"), HasSubstr("--resume")));
  TrainRequest dry = request("run");
  dry.dry_run = true;
  ::testing::internal::CaptureStderr();
  set_log_level(LogLevel::kInfo);
  train_model(dry);
  set_log_level(LogLevel::kError);
  EXPECT_THAT(
      ::testing::internal::GetCapturedStderr(),
      AllOf(
          HasSubstr("warning: without --dry-run this would be refused: the output folder '"),
          HasSubstr("already holds a model and its run: go on with --resume, or choose another"),
          HasSubstr("dry run: nothing was written")));
  EXPECT_TRUE(model == read_file(path("run") / "model.safetensors"));
}

TEST_F(TrainerErrors, ResumingAndStartingFromAModelExcludeEachOther) {
  TrainRequest both = request("run");
  both.resume = true;
  both.init_from = path("base");
  EXPECT_THAT(message(both), HasSubstr("--init-from"));
}

TEST_F(TrainerErrors, AMissingModelToStartFromIsNamed) {
  TrainRequest tune = request("run");
  tune.init_from = path("nowhere");
  EXPECT_THAT(message(tune), HasSubstr("nowhere"));
}

TEST_F(TrainerErrors, ARunWithoutAnEndIsRefused) {
  config_.training.max_updates = 0;
  EXPECT_THAT(
      testing::error_of<UsageError>([&] { train_model(request("run")); }),
      AllOf(
          HasSubstr("training.max_epochs"),
          HasSubstr("training.max_updates"),
          HasSubstr("training.patience")));
}

}  // namespace
}  // namespace seqconv::internal
