#include "train/run_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <set>

#include "base/error.h"
#include "support/ended_process.h"
#include "support/temporary_folder.h"

namespace seqconv::internal {
namespace {

std::set<std::string> names(const std::filesystem::path& folder) {
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    found.insert(entry.path().filename().string());
  return found;
}

class Checkpoints : public ::testing::Test {
 protected:
  Checkpoints() {
    std::filesystem::create_directories(run_.checkpoints());
    for (const int64_t update : {5, 90, 100, 120000000})
      temporary_.write(std::filesystem::relative(run_.checkpoint(update), temporary_.path()), "");
    temporary_.write("training/checkpoints/update-mine.safetensors", "");
    temporary_.write("training/checkpoints/keep.safetensors", "");
  }

  testing::TemporaryFolder temporary_;
  RunFolder run_{temporary_.path()};
};

TEST_F(Checkpoints, NamesHaveEightDigitsOrMore) {
  EXPECT_EQ(run_.checkpoint(7).filename(), "update-00000007.safetensors");
  EXPECT_EQ(run_.checkpoint(120000000).filename(), "update-120000000.safetensors");
}

TEST_F(Checkpoints, TheLastOnesStayAndOtherFilesAreNotTouched) {
  std::vector<int64_t> own = {5, 90, 100, 120000000};
  remove_old_checkpoints(run_, own, 2);
  EXPECT_EQ(own, (std::vector<int64_t>{100, 120000000}));
  EXPECT_EQ(
      names(run_.checkpoints()),
      (std::set<std::string>{
          "keep.safetensors",
          "update-mine.safetensors",
          "update-00000100.safetensors",
          "update-120000000.safetensors"}));
}

TEST_F(Checkpoints, ThoseOfOthersAreNeitherCountedNorTouched) {
  std::vector<int64_t> own = {7, 90};  // the first is gone already
  remove_old_checkpoints(run_, own, 1);
  EXPECT_EQ(own, (std::vector<int64_t>{90}));
  EXPECT_EQ(names(run_.checkpoints()).size(), 6u);
  own = {90, 101};
  EXPECT_EQ(other_checkpoints(run_, own), (std::vector<int64_t>{5, 100, 120000000}));
  remove_old_checkpoints(run_, own, 1);
  EXPECT_EQ(
      names(run_.checkpoints()),
      (std::set<std::string>{
          "keep.safetensors",
          "update-mine.safetensors",
          "update-00000005.safetensors",
          "update-00000100.safetensors",
          "update-120000000.safetensors"}));
}

TEST_F(Checkpoints, MoreThanThereAreIsNoError) {
  std::vector<int64_t> own = {5, 90};
  remove_old_checkpoints(run_, own, 50);
  EXPECT_EQ(names(run_.checkpoints()).size(), 6u);
  EXPECT_EQ(own.size(), 2u);
}

TEST_F(Checkpoints, OneOfAnotherRunGetsANameThatNoRunWritesTo) {
  const auto file = run_.checkpoint(90);
  EXPECT_EQ(set_aside(run_.checkpoint(91)), "");
  EXPECT_EQ(set_aside(file).filename(), "update-00000090.other-1.safetensors");
  temporary_.write("training/checkpoints/update-00000090.safetensors", "");
  EXPECT_EQ(set_aside(file).filename(), "update-00000090.other-2.safetensors");
  EXPECT_EQ(names(run_.checkpoints()).size(), 7u);
  EXPECT_EQ(other_checkpoints(run_, {}), (std::vector<int64_t>{5, 100, 120000000}));
}

TEST_F(Checkpoints, AnUnfinishedFileIsNeitherALinkNorAFolder) {
  const std::string dead = concat("model.safetensors.tmp-", testing::ended_process());
  std::filesystem::create_directory(temporary_.path() / dead);
  remove_leftovers(run_, /*own=*/false);
  EXPECT_TRUE(std::filesystem::exists(temporary_.path() / dead));
}

TEST_F(Checkpoints, UnfinishedFilesOfEndedProcessesGo) {
  const std::string dead = concat(".tmp-", testing::ended_process());
  const std::string own = concat(".tmp-", ::getpid());
  const std::string places[] = {
      "model.safetensors",
      "config.json",
      "source.dict.txt",
      "bpe.codes",
      "training/state.safetensors",
      "training/config.toml",
      "training/checkpoints/update-00000084.safetensors",
      "training/data/train.source.tokens",
      "training/data/train.source.tokens.offsets",
      "training/data/stamp.json"};
  std::filesystem::create_directories(run_.data());
  for (const std::string& place : places)
    for (const std::string& end : {dead, own, std::string(".tmp-1")})
      temporary_.write(place + end, "");
  temporary_.write("notes" + dead, "");  // not ours
  const auto is_there = [&](const std::string& name) {
    return std::filesystem::exists(temporary_.path() / name);
  };
  remove_leftovers(run_, /*own=*/false);
  for (const std::string& place : places) {
    EXPECT_FALSE(is_there(place + dead)) << place;
    EXPECT_TRUE(is_there(place + own)) << place;
    EXPECT_TRUE(is_there(place + ".tmp-1")) << place;
  }
  EXPECT_TRUE(is_there("notes" + dead));
  remove_leftovers(run_, /*own=*/true);
  for (const std::string& place : places) {
    EXPECT_FALSE(is_there(place + own)) << place;
    EXPECT_TRUE(is_there(place + ".tmp-1")) << place;
  }
  EXPECT_TRUE(is_there("training/checkpoints/keep.safetensors"));
}

TEST(RunFolder, AFolderHoldsAModelOnceParametersAreThere) {
  const testing::TemporaryFolder folder;
  const RunFolder run{folder.path()};
  EXPECT_FALSE(run.holds_model());
  folder.write("config.json", "{}");
  EXPECT_FALSE(run.holds_model());
  folder.write("model.safetensors", "");
  EXPECT_TRUE(run.holds_model());
  EXPECT_FALSE(run.holds_state());
  std::filesystem::rename(folder.path() / "model.safetensors", folder.path() / kLastParameters);
  EXPECT_TRUE(run.holds_model());
}

}  // namespace
}  // namespace seqconv::internal
