#include "model/model_checkpoints.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/safetensors.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

namespace seqconv::internal {
namespace {

using ::testing::HasSubstr;

/// The folder of a run, of whose files only the metadata matter.
class ModelCheckpoints : public ::testing::Test {
 protected:
  ModelCheckpoints() { set_log_level(LogLevel::kError); }

  void write(const std::string& name, const std::map<std::string, std::string>& metadata) {
    const auto file = folder_.path() / name;
    std::filesystem::create_directories(file.parent_path());
    write_safetensors(file, {}, metadata);
  }
  void write_parameters(const std::string& name, int64_t update) {
    write(name, {{"update", std::to_string(update)}});
  }
  void write_state(int64_t update, const std::vector<int64_t>& checkpoints) {
    const Json position = {{"update", update}, {"checkpoints", checkpoints}};
    write("training/state.safetensors", {{"position", position.dump()}});
  }

  std::string chosen(const std::string& name) {
    const RootedPath file = choose_checkpoint(folder_.path(), name);
    return std::filesystem::relative(file.path(), folder_.path()).string();
  }
  std::string error(const std::string& name) {
    return testing::error_of([&] { choose_checkpoint(folder_.path(), name); });
  }

  testing::TemporaryFolder folder_;
};

TEST_F(ModelCheckpoints, TheBestIsTheFolderItself) {
  EXPECT_EQ(choose_checkpoint("runs/none", "best").string(), "runs/none");
}

TEST_F(ModelCheckpoints, TheLastIsWhatTheRunLeftBesideTheBest) {
  write_parameters("model.safetensors", 5);
  write_parameters("model.last.safetensors", 9);
  write_parameters("training/checkpoints/update-00000008.safetensors", 8);
  write_state(9, {8});
  EXPECT_EQ(chosen("last"), "model.last.safetensors");
  EXPECT_EQ(chosen("update-8"), "training/checkpoints/update-00000008.safetensors");
  EXPECT_EQ(chosen("update-9"), "model.last.safetensors");
  EXPECT_EQ(chosen("update-5"), "model.safetensors");
  EXPECT_THAT(
      error("update-7"),
      HasSubstr("' has no parameters for --checkpoint update-7; it has: best (model.safetensors, "
                "update 5), last (model.last.safetensors, update 9), update-8"));
}

TEST_F(ModelCheckpoints, WithoutThatItIsTheLatestThatTheRunHasWritten) {
  write_parameters("model.safetensors", 5);
  for (const int64_t update : {8, 10, 99})
    write_parameters(
        concat(
            "training/checkpoints/update-000000", update < 10 ? "0" : "", update, ".safetensors"),
        update);
  write_state(12, {8, 10});
  EXPECT_EQ(chosen("last"), "training/checkpoints/update-00000010.safetensors")
      << "99 is of another run";
  EXPECT_THAT(error("update-99"), HasSubstr("it has: best"));
  write_parameters("model.safetensors", 11);
  EXPECT_EQ(chosen("last"), "model.safetensors");
  std::filesystem::remove(folder_.path() / "training/state.safetensors");
  EXPECT_EQ(chosen("update-99"), "training/checkpoints/update-00000099.safetensors");
}

TEST_F(ModelCheckpoints, TheBestAloneIsTheLastOnlyWhereTheRunSaysSo) {
  write_parameters("model.safetensors", 5);
  EXPECT_THAT(error("last"), HasSubstr("it has: best (model.safetensors, update 5)"));
  write_state(6, {});
  EXPECT_THAT(error("last"), HasSubstr("--checkpoint last"));
  write_state(5, {});
  EXPECT_EQ(chosen("last"), "model.safetensors");
}

TEST_F(ModelCheckpoints, AFolderWithoutARunHasNoLast) {
  write("model.safetensors", {});
  EXPECT_THAT(error("last"), HasSubstr("it has: best (model.safetensors)"));
  std::filesystem::remove(folder_.path() / "model.safetensors");
  EXPECT_THAT(error("last"), HasSubstr("it has: none"));
}

TEST_F(ModelCheckpoints, OtherNamesAndFilesAreRefused) {
  for (const std::string name : {"", "latest", "update-", "update--1", "update-5x", "5"})
    EXPECT_THAT(
        testing::error_of<UsageError>([&] { choose_checkpoint(folder_.path(), name); }),
        HasSubstr(concat("--checkpoint must be best, last or update-N, but got '", name, "'")));
  write_parameters("model.safetensors", 5);
  EXPECT_THAT(
      testing::error_of<UsageError>(
          [&] { choose_checkpoint(folder_.path() / "model.safetensors", "last"); }),
      HasSubstr("is a file"));
}

TEST_F(ModelCheckpoints, ALinkOutOfTheFolderIsNotFollowed) {
  testing::TemporaryFolder outside;
  write_safetensors(outside.path() / "other.safetensors", {}, {{"update", "9"}});
  std::filesystem::create_symlink(
      outside.path() / "other.safetensors", folder_.path() / kLastParameters);
  EXPECT_THAT(error("last"), HasSubstr("model.last.safetensors"));
  EXPECT_EQ(
      choose_checkpoint({folder_.path(), Links::kAnywhere}, "last").path(),
      folder_.path() / kLastParameters);
}

TEST_F(ModelCheckpoints, ADamagedStateSaysNothing) {
  write_parameters("training/checkpoints/update-00000008.safetensors", 8);
  for (const std::string position : {"", "[", "{}", R"({"update": "x", "checkpoints": 3})"}) {
    write("training/state.safetensors", {{"position", position}});
    EXPECT_EQ(chosen("last"), "training/checkpoints/update-00000008.safetensors") << position;
  }
}

}  // namespace
}  // namespace seqconv::internal
