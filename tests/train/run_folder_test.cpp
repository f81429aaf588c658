#include "train/run_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <set>

#include "seqconv/base/error.h"
#include "support/ended_process.h"
#include "support/temporary_folder.h"

namespace seqconv {
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
      temporary_.write(
          std::filesystem::relative(run_.checkpoint(update), temporary_.path()),
          "");
    temporary_.write("training/checkpoints/update-mine.safetensors", "");
    temporary_.write("training/checkpoints/keep.safetensors", "");
  }

  testing::TemporaryFolder temporary_;
  RunFolder run_{temporary_.path()};
};

TEST_F(Checkpoints, NamesHaveEightDigitsOrMore) {
  EXPECT_EQ(run_.checkpoint(7).filename(), "update-00000007.safetensors");
  EXPECT_EQ(
      run_.checkpoint(120000000).filename(),
      "update-120000000.safetensors");
}

TEST_F(Checkpoints, TheLastOnesStayAndOtherFilesAreNotTouched) {
  remove_old_checkpoints(run_, 120000000, 2);
  EXPECT_EQ(
      names(run_.checkpoints()),
      (std::set<std::string>{
          "keep.safetensors",
          "update-mine.safetensors",
          "update-00000100.safetensors",
          "update-120000000.safetensors"}));
}

TEST_F(Checkpoints, LaterOnesThanThePresentAreNotCounted) {
  remove_old_checkpoints(run_, 100, 1);
  EXPECT_EQ(
      names(run_.checkpoints()),
      (std::set<std::string>{
          "keep.safetensors",
          "update-mine.safetensors",
          "update-00000100.safetensors",
          "update-120000000.safetensors"}));
}

TEST_F(Checkpoints, MoreThanThereAreIsNoError) {
  remove_old_checkpoints(run_, 120000000, 50);
  EXPECT_EQ(names(run_.checkpoints()).size(), 6u);
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
}

}  // namespace
}  // namespace seqconv
