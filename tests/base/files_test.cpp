#include "base/files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/file_stamps.h"
#include "base/mapping_faults.h"
#include "support/ended_process.h"
#include "support/errors.h"
#include "support/file_size_limit.h"
#include "support/temporary_folder.h"

namespace seqconv::internal {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::error_of;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

std::string mapped_text(const MappedFile& file) {
  const auto bytes = file.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(ReadFile, GivesEveryByte) {
  TemporaryFolder folder;
  std::string bytes;
  for (int i = 0; i < 300'000; ++i)
    bytes.push_back(static_cast<char>(i * 7));
  EXPECT_EQ(read_file(folder.write("f", bytes)), bytes);
  EXPECT_EQ(read_file(folder.write("e", "")), "");
}

TEST(ReadFile, ReadsFilesThatHaveNoSize) {
  EXPECT_THAT(read_file("/proc/self/status"), HasSubstr("VmRSS"));
}

TEST(ReadFile, SaysWhichFileAndWhy) {
  TemporaryFolder folder;
  EXPECT_EQ(
      error_of([&] { read_file("/nowhere/f"); }),
      "cannot read '/nowhere/f': No such file or directory");
  EXPECT_THAT(
      error_of([&] { read_file(folder.path()); }),
      HasSubstr("a file was wanted, but it is a folder"));
}

TEST(ReadFile, RefusesWhatIsTooLarge) {
  TemporaryFolder folder;
  const auto path = folder.write("sparse", "");
  if (::truncate(path.c_str(), off_t{1} << 43) != 0)
    GTEST_SKIP() << "the file system has no sparse files of 8 TiB";
  EXPECT_THAT(
      error_of([&] { read_file(path); }), HasSubstr("more than 4 GiB, too large to be read whole"));
}

TEST(WriteFile, ReplacesTheOldContentWhole) {
  TemporaryFolder folder;
  const auto path = folder.path() / "f";
  write_file_atomically(path, "one");
  EXPECT_EQ(read_file(path), "one");
  write_file_atomically(path, "two\0three");
  EXPECT_EQ(read_file(path), "two");
  write_file_atomically(path, "");
  EXPECT_EQ(read_file(path), "");
  EXPECT_EQ(folder.entries(), 1);
}

TEST(WriteFile, KeepsTheOldContentWhenTheDiskIsFull) {
  TemporaryFolder folder;
  const auto path = folder.path() / "f";
  write_file_atomically(path, "old");
  EXPECT_THAT(
      error_of([&] {
        testing::FileSizeLimit limit(1000);
        write_file_atomically(path, std::string(5000, 'x'));
      }),
      AllOf(HasSubstr("cannot write '" + path.string()), HasSubstr("large")));
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(folder.entries(), 1) << "the temporary file was left";
}

TEST(WriteFile, SaysWhyItCannot) {
  TemporaryFolder folder;
  EXPECT_EQ(
      error_of([] { write_file_atomically("/nowhere/f", ""); }),
      "cannot write '/nowhere/f': No such file or directory");
  EXPECT_THAT(
      error_of([&] { write_file_atomically(folder.path(), ""); }), HasSubstr("it is a folder"));
  const auto file = folder.write("file", "");
  EXPECT_THAT(
      error_of([&] { write_file_atomically(file + "/f", ""); }), HasSubstr("Not a directory"));
}

/// While it lives, root has no more rights than anybody.
class WithoutRootsRights {
 public:
  WithoutRootsRights() { EXPECT_EQ(::seteuid(root_ ? kNobody : ::geteuid()), 0); }
  ~WithoutRootsRights() {
    if (root_) {
      EXPECT_EQ(::seteuid(0), 0);
    }
  }

 private:
  static constexpr uid_t kNobody = 65534;
  const bool root_ = ::geteuid() == 0;
};

TEST(WriteFile, KeepsTheOldContentInAFolderThatIsReadOnly) {
  TemporaryFolder folder;
  const auto path = folder.write("f", "old");
  // Read and entered by all, so that root may become nobody in it.
  fs::permissions(folder.path(), fs::perms(0555));
  {
    const WithoutRootsRights others;
    EXPECT_THAT(
        error_of([&] { write_file_atomically(path, "new"); }), HasSubstr("Permission denied"));
  }
  fs::permissions(folder.path(), fs::perms::owner_all);
  EXPECT_EQ(read_file(path), "old");
}

TEST(WriteFile, WritesToDevicesAndDoesNotReplaceThem) {
  EXPECT_NO_THROW(write_file_atomically("/dev/null", "gone"));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_THAT(
      error_of([] { write_file_atomically("/dev/full", "x"); }),
      HasSubstr("cannot write '/dev/full': No space left on device"));
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST(AtomicFile, AppearsWithItsCommitAndNotBefore) {
  TemporaryFolder folder;
  const auto path = folder.path() / "f";
  {
    AtomicFile file(path);
    file.write("abcdef", 6);
    file.write_at(1, "XY", 2);
    file.flush();
    EXPECT_FALSE(fs::exists(path));
    EXPECT_EQ(read_file(file.temporary()), "aXYdef");
    file.commit();
    EXPECT_EQ(read_file(path), "aXYdef");
  }
  {
    AtomicFile file(path);
    file.write("given up", 8);
  }
  EXPECT_EQ(read_file(path), "aXYdef");
  EXPECT_EQ(folder.entries(), 1);
}

TEST(AtomicFile, ReplacesTheFileBehindLinksAndKeepsThem) {
  TemporaryFolder folder;
  fs::create_directory(folder.path() / "d");
  folder.write("d/f", "old");
  fs::create_symlink("d/f", folder.path() / "near");
  fs::create_symlink(folder.path() / "near", folder.path() / "far");
  fs::create_symlink("d/new", folder.path() / "dangling");
  write_file_atomically(folder.path() / "far", "new");
  write_file_atomically(folder.path() / "dangling", "made");
  EXPECT_EQ(read_file(folder.path() / "d/f"), "new");
  EXPECT_EQ(read_file(folder.path() / "d/new"), "made");
  for (const char* link : {"near", "far", "dangling"})
    EXPECT_TRUE(fs::is_symlink(folder.path() / link)) << link;
  EXPECT_EQ(folder.entries(), 4);
  fs::create_symlink("circle", folder.path() / "circle");
  EXPECT_THAT(
      error_of([&] { write_file_atomically(folder.path() / "circle", ""); }),
      HasSubstr("circle': Too many levels of symbolic links"));
}

TEST(AtomicFile, WritesToADescriptorsFileThatHasNoNameLeft) {
  TemporaryFolder folder;
  const auto path = folder.write("f", "old");
  const int fd = ::open(path.c_str(), O_RDWR);
  ASSERT_GE(fd, 0);
  fs::remove(path);
  const fs::path name = concat("/proc/self/fd/", fd);
  write_file_atomically(name, "ne");
  EXPECT_EQ(read_file(name), "ne");
  EXPECT_EQ(folder.entries(), 0);
  ::close(fd);
}

TEST(AtomicFile, DeletesWhatEndedProcessesLeftOfTheSameFile) {
  TemporaryFolder folder;
  const std::string dead = concat(".tmp-", testing::ended_process());
  folder.write("f" + dead, "half");
  folder.write("f.tmp-1", "of a process that lives");
  folder.write("g" + dead, "of another file");
  write_file_atomically(folder.path() / "f", "whole");
  EXPECT_FALSE(fs::exists(folder.path() / ("f" + dead)));
  EXPECT_TRUE(fs::exists(folder.path() / "f.tmp-1"));
  EXPECT_TRUE(fs::exists(folder.path() / ("g" + dead)));
  EXPECT_EQ(folder.entries(), 3);
}

TEST(AtomicFile, TellsItsUnfinishedFilesByTheirNames) {
  TemporaryFolder folder;
  const AtomicFile file(folder.path() / "update-7.safetensors");
  const auto found = unfinished_file(file.temporary());
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->name, "update-7.safetensors");
  EXPECT_EQ(found->process, ::getpid());
  for (const char* other :
       {"update-7.safetensors",
        "f.tmp-",
        "f.tmp-x",
        "f.tmp-7x",
        "f.tmp--7",
        "f.tmp-0",
        "f.tmp-99999999999",
        ".tmp-7"})
    EXPECT_FALSE(unfinished_file(folder.path() / other)) << other;
}

TEST(AtomicFile, KnowsWhetherAProcessLives) {
  EXPECT_TRUE(process_lives(::getpid()));
  EXPECT_TRUE(process_lives(1));  // somebody else's
  EXPECT_FALSE(process_lives(testing::ended_process()));
}

TEST(ResolvePath, LeadsThroughLinksAndFoldersThatAreNotYetThere) {
  TemporaryFolder folder;
  const fs::path root = fs::canonical(folder.path());
  fs::create_directory(root / "d");
  fs::create_directory_symlink("d", root / "link");
  fs::create_symlink("d/new", root / "dangling");
  for (const char* path : {"d", "d/", "d/x/..", "d/x/../", "link/.", "x/../d"})
    EXPECT_EQ(resolve_path(root / path), root / "d") << path;
  for (const char* path : {"d/new", "link/new/", "dangling"})
    EXPECT_EQ(resolve_path(root / path), root / "d/new") << path;
  EXPECT_EQ(resolve_path("x"), fs::current_path() / "x");
}

TEST(CreateFolder, MakesParentsAndTakesWhatIsThere) {
  TemporaryFolder folder;
  create_folder(folder.path() / "a/b/c");
  EXPECT_NO_THROW(create_folder(folder.path() / "a/b/c"));
  EXPECT_TRUE(fs::is_directory(folder.path() / "a/b/c"));
  const auto file = folder.write("file", "");
  EXPECT_THAT(error_of([&] { create_folder(file); }), HasSubstr("cannot create folder '" + file));
  EXPECT_THAT(error_of([&] { create_folder(file + "/x"); }), HasSubstr("Not a directory"));
  EXPECT_THAT(error_of([&] { create_folder(""); }), HasSubstr("cannot create folder ''"));
}

TEST(MappedFile, ShowsTheFile) {
  TemporaryFolder folder;
  MappedFile file(folder.write("f", "hello"));
  EXPECT_EQ(mapped_text(file), "hello");
  MappedFile moved(std::move(file));
  EXPECT_EQ(mapped_text(moved), "hello");
  EXPECT_TRUE(file.bytes().empty());
  MappedFile assigned(folder.write("g", "other"));
  assigned = std::move(moved);
  EXPECT_EQ(mapped_text(assigned), "hello");
  EXPECT_EQ(assigned.path(), folder.path() / "f");
  EXPECT_TRUE(MappedFile(folder.write("e", "")).bytes().empty());
}

TEST(MappedFile, OutlivesTheReplacementOfItsFile) {
  TemporaryFolder folder;
  const MappedFile file(folder.write("f", "old"));
  write_file_atomically(folder.path() / "f", "new content");
  EXPECT_EQ(mapped_text(file), "old");
}

TEST(MappedFile, AFileThatIsCutShortEndsAProgramWithItsName) {
  const testing::TemporaryFolder folder;
  const std::string name = folder.write("cut", std::string(1 << 16, 'x'));
  const auto read_what_is_gone = [&] {
    report_mapping_faults();
    MappedFile other(name);
    const MappedFile file(std::move(other));
    fs::resize_file(name, 10);
    std::exit(mapped_text(file).back() == 'x' ? 7 : 8);
  };
  EXPECT_EXIT(read_what_is_gone(), ::testing::ExitedWithCode(1), "error: '.*cut' was cut short");
  // Faults outside files of ours go their way.
  EXPECT_DEATH(
      {
        report_mapping_faults();
        std::raise(SIGBUS);
      },
      ::testing::Not(HasSubstr("cut short")));
}

// Another thread maps and unmaps while the process forks.
TEST(MappedFile, AChildProcessWaitsForNoThreadOfItsParent) {
  const testing::TemporaryFolder folder;
  const std::string name = folder.write("f", "text");
  std::atomic<bool> done = false;
  std::thread other([&done, short_name = fs::path("f")] {
    while (!done) {  // without memory, whose locks are a sanitizer's
      note_mapping(&done, sizeof done, short_name);
      forget_mapping(&done);
    }
  });
  int finished = 0;
  for (int i = 0; i < 200; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(5);
      MappedFile file(name);
      ::_exit(0);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    finished += status == 0 ? 1 : 0;
    if (status != 0)
      break;
  }
  done = true;
  other.join();
  EXPECT_EQ(finished, 200);
}

TEST(FileStamps, TellsWhatWasWrittenToFromWhatWasReplaced) {
  const testing::TemporaryFolder folder;
  FileStamps stamps;
  for (const char* name : {"written", "replaced", "removed"})
    stamps.add(folder.write(name, "some"));
  stamps.add(folder.path() / "made");
  EXPECT_EQ(stamps.changed(), std::nullopt);
  EXPECT_EQ(stamps.written(), std::nullopt);
  folder.write("made", "");
  EXPECT_EQ(stamps.changed(), folder.path() / "made");
  fs::remove(folder.path() / "removed");
  EXPECT_EQ(stamps.changed(), folder.path() / "removed");
  write_file_atomically(folder.path() / "replaced", "more");
  EXPECT_EQ(stamps.changed(), folder.path() / "replaced");
  EXPECT_EQ(stamps.written(), std::nullopt);
  std::ofstream(folder.path() / "written", std::ios::app) << "x";
  EXPECT_EQ(stamps.written(), folder.path() / "written");
}

TEST(MappedFile, RefusesWhatIsNoFile) {
  TemporaryFolder folder;
  const auto pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const auto& [path, kind] : {std::pair{pipe, "a pipe"}, {fs::path("/dev/zero"), "a device"}})
    EXPECT_EQ(
        error_of([&] { MappedFile file(path); }),
        concat("cannot read '", path.string(), "': an ordinary file was wanted, but it is ", kind));
  EXPECT_THAT(error_of([&] { MappedFile file(folder.path()); }), HasSubstr("it is a folder"));
  EXPECT_THAT(
      error_of([&] { MappedFile file("/nowhere"); }),
      HasSubstr("cannot read '/nowhere': No such file"));
}

}  // namespace
}  // namespace seqconv::internal
