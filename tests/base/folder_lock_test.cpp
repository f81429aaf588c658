#include "base/folder_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/files.h"
#include "support/ended_process.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

namespace seqconv::internal {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class FolderLockFile : public ::testing::Test {
 protected:
  std::string refusal() {
    return testing::error_of([&] { const FolderLock second(folder_.path(), file_); });
  }

  testing::TemporaryFolder folder_;
  std::filesystem::path file_ = folder_.path() / "lock";
};

TEST_F(FolderLockFile, IsOneHoldersAtATime) {
  {
    const FolderLock lock(folder_.path(), file_);
    EXPECT_TRUE(lock.held());
    EXPECT_THAT(
        refusal(),
        AllOf(
            HasSubstr("'" + folder_.path().string() + "' is in use"),
            HasSubstr(concat("process ", ::getpid(), " is"))));
  }
  EXPECT_TRUE(FolderLock(folder_.path(), file_).held());
}

TEST_F(FolderLockFile, TheSystemLetsGoOfAKilledProcess) {
  // A number that is long gone, as a power cut leaves it.
  folder_.write("lock", concat(testing::ended_process(), "\n"));
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const FolderLock lock(folder_.path(), file_);
    [[maybe_unused]] const auto said = ::write(ready[1], "!", 1);
    ::pause();
    ::_exit(0);
  }
  char mark = 0;
  ASSERT_EQ(::read(ready[0], &mark, 1), 1);
  EXPECT_THAT(refusal(), HasSubstr(concat("process ", child, " is")));
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  ::close(ready[0]);
  ::close(ready[1]);
  EXPECT_TRUE(FolderLock(folder_.path(), file_).held());
}

TEST_F(FolderLockFile, SaysWhyItCannot) {
  file_ = "/nowhere/lock";
  EXPECT_EQ(refusal(), "cannot write '/nowhere/lock': No such file or directory");
}

}  // namespace
}  // namespace seqconv::internal
