#include "train/run_folder.h"

#include <gtest/gtest.h>

#include <set>

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

TEST(RunFolder, AFolderHoldsAModelOnceParametersOrAStateAreThere) {
  const testing::TemporaryFolder folder;
  const RunFolder run{folder.path()};
  EXPECT_FALSE(run.holds_model());
  folder.write("config.json", "{}");
  EXPECT_FALSE(run.holds_model());
  folder.write("model.safetensors", "");
  EXPECT_TRUE(run.holds_model());
}

}  // namespace
}  // namespace seqconv
