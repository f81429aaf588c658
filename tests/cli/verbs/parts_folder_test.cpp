#include "cli/verbs/parts_folder.h"

#include <gmock/gmock.h>

#include <atomic>
#include <fstream>
#include <string>
#include <thread>

#include "base/files.h"
#include "base/options.h"
#include "cli/verbs/files_in_use.h"
#include "cli/verbs/job_files.h"
#include "cli/verbs/part_writer.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

namespace seqconv::internal::verbs {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class PartsOfAJob : public ::testing::Test {
 protected:
  PartsFolder folder(int64_t part, const Json& job = {{"parts", 2}}) {
    PartsFolder folder(output_, {part, 2});
    folder.enter(job);
    return folder;
  }

  fs::path inside(const std::string& name) const { return output_.string() + ".parts/" + name; }

  testing::TemporaryFolder place_;
  fs::path output_ = place_.path() / "out";
};

PartProgress some_progress() {
  return {
      .offset = 12,
      .lines = 3,
      .replaced = 1,
      .failed = {.count = 2, .first = "x:1: \"\xFF\"", .numbers = {1, 3}}};
}

TEST_F(PartsOfAJob, ARecordIsReadAsItWasWritten) {
  const PartsFolder first = folder(1);
  EXPECT_FALSE(first.load());
  PartWriter writer(first, {});
  writer.stream() << "abc\n";
  writer.reached(some_progress());
  writer.stream() << "not counted\n";
  const auto found = first.load();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->offset, 12);
  EXPECT_EQ(found->lines, 3);
  EXPECT_EQ(found->bytes, 4);
  EXPECT_EQ(found->failed.count, 2);
  EXPECT_EQ(found->failed.numbers, (std::vector<int64_t>{1, 3}));
  EXPECT_FALSE(found->done);
  writer.finish();
  EXPECT_TRUE(first.is_done());
  EXPECT_EQ(read_file(first.file()), "abc\nnot counted\n");
}

// Whatever a disk makes of it: never half of one is believed, and none crashes.
TEST_F(PartsOfAJob, NoDamagedRecordIsBelieved) {
  const PartsFolder first = folder(1);
  first.save(some_progress());
  const std::string whole = read_file(inside("1.json"));
  const auto load = [&](const std::string& content) {
    write_file_atomically(inside("1.json"), content);
    ::testing::internal::CaptureStderr();
    const auto found = first.load();
    const std::string told = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(told.empty(), found.has_value()) << told;
    return found;
  };
  EXPECT_TRUE(load(whole));
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string other = whole;
    other[i] = other[i] == '7' ? '8' : '7';
    EXPECT_FALSE(load(other)) << other;
    if (i % 8 == 0 && i + 2 < whole.size()) {
      EXPECT_FALSE(load(whole.substr(0, i))) << i;
    }
  }
}

TEST_F(PartsOfAJob, TheLastOneJoinsAndTheFolderGoes) {
  for (const int64_t part : {2, 1}) {
    const PartsFolder parts = folder(part);
    PartWriter writer(parts, {.lines = part});
    writer.stream() << "part " << part << '\n';
    writer.finish();
    const JoinedParts joined = parts.join();
    EXPECT_EQ(joined.missing, part - 1);
    EXPECT_EQ(joined.here, part == 1);
  }
  EXPECT_EQ(read_file(output_), "part 1\npart 2\n");
  EXPECT_FALSE(fs::exists(inside("")));
  EXPECT_THAT(
      testing::error_of([&] { folder(1); }),
      HasSubstr("'" + output_.string() + "' is there already"));
}

TEST_F(PartsOfAJob, ARecordThatAnotherProcessIsWritingIsNoStranger) {
  const fs::path parts = output_.string() + ".parts";
  fs::create_directory(parts);
  std::atomic<bool> done = false;
  std::thread other([&] {
    while (!done) {
      std::ofstream(inside("job.json.tmp-abcdef")) << "{}";
      fs::remove(inside("job.json.tmp-abcdef"));
    }
  });
  std::string foreign;
  for (int i = 0; i < 5000 && foreign.empty(); ++i)
    foreign = foreign_entry(parts, /*begun=*/false);
  done = true;
  other.join();
  EXPECT_EQ(foreign, "");
}

TEST(FilesInUse, AnotherFileIsToldFromOneThatWasWrittenTo) {
  const testing::TemporaryFolder folder;
  const auto write_all = [&] {
    folder.write(
        "config.json",
        R"({"format": "seqconv-model", "format_version": 1, "architecture": {},
            "text": {"source": {"dictionary": "source.txt"}, "target": 7}})");
    for (const char* name : {"source.txt", "model.safetensors", "list"})
      folder.write(name, "old");
  };
  for (const std::string name : {"config.json", "source.txt", "model.safetensors", "list"}) {
    SCOPED_TRACE(name);
    write_all();
    const fs::path file = folder.path() / name;
    const FilesInUse files({folder.path()}, {.shortlist = folder.path() / "list"});
    EXPECT_NO_THROW(files.check_same());
    write_file_atomically(file, read_file(file));  // another file
    EXPECT_THAT(
        testing::error_of([&] { files.check_same(); }),
        HasSubstr("'" + file.string() + "' was replaced or changed while the model"));
    EXPECT_NO_THROW(files.check_not_written());
    const FilesInUse others({folder.path()}, {.shortlist = folder.path() / "list"});
    std::ofstream(file, std::ios::app) << " ";
    EXPECT_THAT(
        testing::error_of([&] { others.check_not_written(); }),
        HasSubstr("'" + file.string() + "' was written to while it was in use"));
  }
}

TEST_F(PartsOfAJob, AnotherJobIsNamedByWhatDiffers) {
  folder(1, {{"parts", 2}, {"search", {{"beam", 5}}}});
  const Json other = {{"parts", 2}, {"search", {{"beam", 4}}}, {"seed", 1}};
  EXPECT_THAT(
      testing::error_of([&] { folder(2, other); }),
      HasSubstr("search.beam was 5 and is 4; seed was missing and is 1; go on"));
}

}  // namespace
}  // namespace seqconv::internal::verbs
