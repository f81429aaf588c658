#include "base/rooted_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "base/error.h"
#include "base/files.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

namespace seqconv::internal {
namespace {

namespace fs = std::filesystem;
using testing::error_of;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

/// A folder "model" with a file "inside" of "good", beside a file "secret".
class RootedPathTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(root_ / "sub");
    folder_.write("secret", "secret");
    folder_.write("model/inside", "good");
    folder_.write("model/sub/deep", "deep");
  }

  std::string error(const RootedPath& path) const {
    const std::string mapped = error_of([&] { MappedFile file(path); });
    EXPECT_EQ(error_of([&] { read_file(path); }), mapped);
    return mapped;
  }

  TemporaryFolder folder_;
  fs::path root_ = folder_.path() / "model";
  RootedPath model_{root_};
};

TEST_F(RootedPathTest, ReadsWhatLiesInside) {
  EXPECT_EQ(read_file(model_ / "inside"), "good");
  EXPECT_EQ(read_file(model_ / "./sub" / "deep"), "deep");
  EXPECT_EQ(read_file(model_ / "sub//deep"), "deep");
  fs::create_symlink("sub/deep", root_ / "relative");
  fs::create_symlink(root_ / "inside", root_ / "absolute");
  fs::create_symlink("../../model/inside", root_ / "sub/around");
  fs::create_directory_symlink("sub", root_ / "folder");
  fs::create_directory_symlink(root_, folder_.path() / "link");
  for (const RootedPath& model : {model_, RootedPath(folder_.path() / "link")})
    for (const auto& [name, content] :
         {std::pair{"relative", "deep"},
          {"absolute", "good"},
          {"sub/around", "good"},
          {"folder/deep", "deep"}})
      EXPECT_EQ(read_file(model / name), content) << name;
}

TEST_F(RootedPathTest, NamesThatLeadOutAreNone) {
  for (const auto& [name, why] :
       {std::pair<std::string, const char*>{"", "it is empty"},
        {"/etc/passwd", "it begins with '/'"},
        {(root_ / "inside").string(), "it begins with '/'"},
        {"..", "it leads out by '..'"},
        {"../secret", "it leads out by '..'"},
        {"sub/../inside", "it leads out by '..'"},
        {std::string("inside\0", 7), "it holds NUL"}}) {
    EXPECT_EQ(outward_name(name), why);
    EXPECT_THAT(
        error_of([&] { (void)(model_ / name); }),
        HasSubstr("inside '" + root_.string() + "' was wanted, but got '"));
  }
  for (const char* name : {"...", "..a", "a..", " ", "~", "sub/deep", "./x"})
    EXPECT_EQ(outward_name(name), "") << name;
}

TEST_F(RootedPathTest, LinksOutwardsMustBeAllowed) {
  fs::create_symlink("../secret", root_ / "up");
  fs::create_symlink(folder_.path() / "secret", root_ / "away");
  fs::create_symlink("away", root_ / "twice");
  fs::create_directory_symlink("..", root_ / "parent");
  for (const char* name : {"up", "away", "twice", "parent/secret"}) {
    EXPECT_EQ(
        error(model_ / name),
        concat(
            "cannot read '",
            (root_ / name).string(),
            "': a file inside '",
            root_.string(),
            "' was wanted, but links lead out of it; follow_links (--follow-links) allows that"));
    EXPECT_EQ(read_file(RootedPath(root_, Links::kAnywhere) / name), "secret");
  }
  // The way is the user's own.
  EXPECT_EQ(read_file(root_ / "up"), "secret");
  EXPECT_EQ(read_file(RootedPath(root_ / "parent") / "secret"), "secret");
  // A folder whose name begins like the root's is another one.
  fs::create_directory(folder_.path() / "model2");
  folder_.write("model2/f", "secret");
  fs::create_symlink("../model2/f", root_ / "beside");
  EXPECT_THAT(error(model_ / "beside"), HasSubstr("links lead out of it"));
}

TEST_F(RootedPathTest, WhatIsNoOrdinaryFileIsNamed) {
  ASSERT_EQ(::mkfifo((root_ / "pipe").c_str(), 0600), 0);
  fs::create_symlink("pipe", root_ / "linked");
  fs::create_symlink("nothing", root_ / "dangling");
  fs::create_symlink("circle", root_ / "circle");
  for (const Links links : {Links::kInside, Links::kAnywhere})
    for (const auto& [name, wanted] :
         {std::pair{"pipe", "an ordinary file was wanted, but it is a pipe"},
          {"linked", "an ordinary file was wanted, but it is a pipe"},
          {"sub", "a file was wanted, but it is a folder"},
          {".", "a file was wanted, but it is a folder"},
          {"dangling", "a file was wanted, but it is a link that leads nowhere"},
          {"circle", "a file was wanted, but its links lead in a circle"},
          {"nowhere", "No such file or directory"},
          {"inside/x", "Not a directory"}})
      EXPECT_EQ(
          error(RootedPath(root_, links) / name),
          concat("cannot read '", (root_ / name).string(), "': ", wanted));
  fs::create_symlink("/dev/zero", root_ / "device");
  EXPECT_THAT(error(RootedPath(root_, Links::kAnywhere) / "device"), HasSubstr("it is a device"));
}

TEST_F(RootedPathTest, APathWithoutAFolderIsThatOfTheWorkingOne) {
  const fs::path before = fs::current_path();
  fs::current_path(root_);
  const std::string good = read_file(RootedPath("") / "inside");
  fs::create_symlink("../secret", root_ / "up");
  const std::string bad = error_of([] { read_file(RootedPath("") / "up"); });
  fs::current_path(before);
  EXPECT_EQ(good, "good");
  EXPECT_THAT(bad, HasSubstr("links lead out of it"));
}

/// Whoever checks and then opens by name reads the secret within a moment.
TEST_F(RootedPathTest, AFileThatChangesIntoALinkIsNeverFollowed) {
  std::atomic<bool> done = false;
  std::thread changer([&] {
    const fs::path name = root_ / "sub", kept = folder_.path() / "kept";
    const fs::path file = root_ / "inside", other = root_ / "other";
    folder_.write("deep", "secret");
    while (!done) {
      fs::rename(name, kept);
      fs::create_directory_symlink("..", name);
      fs::remove(name);
      fs::rename(kept, name);
      fs::create_symlink("../secret", other);
      fs::rename(other, file);
      folder_.write("model/other", "good");
      fs::rename(other, file);
    }
  });
  int read = 0;
  for (int i = 0; i < 3000; ++i)
    for (const char* name : {"sub/deep", "inside"}) {
      try {
        EXPECT_NE(read_file(model_ / name), "secret");
        ++read;
      } catch (const Error&) {}
    }
  done = true;
  changer.join();
  EXPECT_GT(read, 0);
}

}  // namespace
}  // namespace seqconv::internal
