#include "base/threads.h"

#include <gtest/gtest.h>

#include <fstream>

#include "support/temporary_folder.h"

namespace seqconv::internal {
namespace {

namespace fs = std::filesystem;

/// A made-up /proc/self/cgroup and /sys/fs/cgroup.
class ControlGroups : public ::testing::Test {
 protected:
  void write(const std::string& file, const std::string& text) const {
    const fs::path path = folder_.path() / file;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  }
  int64_t processors() const {
    return processors_of_groups(folder_.path() / "groups", folder_.path() / "root");
  }

 private:
  testing::TemporaryFolder folder_;
};

TEST_F(ControlGroups, LeaveAllWhereNothingIsSaid) {
  EXPECT_EQ(processors(), 0);
  write("groups", "0::/user/session\nnonsense");
  EXPECT_EQ(processors(), 0);
  write("root/user/session/cpu.max", "max 100000");
  EXPECT_EQ(processors(), 0);
  write("root/user/session/cpu.max", "nonsense");
  EXPECT_EQ(processors(), 0);
}

TEST_F(ControlGroups, OfVersion2LeaveTheLeastOfThoseAbove) {
  write("groups", "0::/user/session");
  write("root/user/session/cpu.max", "350000 100000");
  EXPECT_EQ(processors(), 4);
  write("root/user/cpu.max", "150000 100000");
  EXPECT_EQ(processors(), 2);
  write("root/user/session/cpu.max", "10000 100000");
  EXPECT_EQ(processors(), 1);
}

TEST_F(ControlGroups, OfVersion2MayBeTheRootOfAContainer) {
  write("groups", "0::/outside/path");
  write("root/cpu.max", "200000 100000");
  EXPECT_EQ(processors(), 2);
}

TEST_F(ControlGroups, OfVersion1AreThoseOfTheProcessorsTime) {
  write("groups", "4:memory:/a\n3:cpu,cpuacct:/job\n2:cpuset:/b");
  write("root/cpu,cpuacct/job/cpu.cfs_quota_us", "-1");
  write("root/cpu,cpuacct/job/cpu.cfs_period_us", "100000");
  EXPECT_EQ(processors(), 0);
  write("root/cpu,cpuacct/job/cpu.cfs_quota_us", "250000");
  EXPECT_EQ(processors(), 3);
  write("root/cpu/cpu.cfs_quota_us", "100000");
  write("root/cpu/cpu.cfs_period_us", "100000");
  EXPECT_EQ(processors(), 1);
}

TEST(Cores, AreOneAtLeast) {
  EXPECT_GE(usable_cores(), 1);
  EXPECT_EQ(thread_count(0), usable_cores());
}

}  // namespace
}  // namespace seqconv::internal
