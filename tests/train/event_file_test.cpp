#include "train/event_file.h"

#include <gmock/gmock.h>

#include <cmath>

#include "base/crc32.h"
#include "base/files.h"
#include "base/options.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

namespace seqconv::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    char two[4];
    std::snprintf(two, sizeof two, "%02x", static_cast<unsigned char>(byte));
    text += two;
  }
  return text;
}

/// All such files begin with these twelve bytes: a record of 24 bytes follows.
TEST(EventFile, FramesSayLengthAndSums) {
  const std::string event = version_event(1.5);
  EXPECT_EQ(hex(event), "09000000000000f83f1a0d627261696e2e4576656e743a32");
  const std::string frame = framed_record(event);
  ASSERT_EQ(frame.size(), 8U + 4 + 24 + 4);
  EXPECT_EQ(hex(frame.substr(0, 12)), "1800000000000000a37f4b22");
  EXPECT_EQ(frame.substr(12, 24), event);
}

TEST(EventFile, ScalarsAreNamedNumbersAtAStep) {
  EXPECT_EQ(
      hex(scalars_event(0.0, 300, {{"a/b", 0.5F}, {"c", -2.0F}})),
      "09000000000000000010ac022a160a0a0a03612f62150000003f0a080a016315000000c0");
  EXPECT_EQ(hex(session_start_event(0.0, 8)), "09000000000000000010083a020801");
}

TEST(EventFile, TakesFiniteNumbersOfTrainingAndValidation) {
  const Json record = {
      {"kind", "validation"},
      {"epoch", 2},
      {"update", 7},
      {"nll_base2", 1.5},
      {"perplexity", nullptr},
      {"best", true},
      {"bleu", 30}};
  EXPECT_THAT(
      scalars_of(record),
      ElementsAre(Pair("validation/nll_base2", 1.5F), Pair("validation/bleu", 30.0F)));
  EXPECT_TRUE(scalars_of({{"kind", "end"}, {"elapsed_seconds", 3}}).empty());
}

TEST(EventFile, EveryRunHasAFileOfItsOwn) {
  const testing::TemporaryFolder folder;
  EventFile first(folder.path() / "tensorboard", 1);
  EventFile second(folder.path() / "tensorboard", 5);
  EXPECT_NE(first.path(), second.path());
  EXPECT_THAT(first.path().filename().string(), ::testing::StartsWith("events.out.tfevents."));
  const size_t head = framed_record(version_event(0)).size();
  EXPECT_EQ(read_file(first.path()).size(), head);
  EXPECT_EQ(
      read_file(second.path()).size(), head + framed_record(session_start_event(0, 5)).size());
  first.write({{"kind", "train"}, {"update", 1}, {"nll_base2", 2.0}});
  EXPECT_GT(read_file(first.path()).size(), head);  // at once
  // Readers take them by their names, however soon they follow each other.
  EXPECT_LT(first.path(), second.path());
}

TEST(EventFile, SaysWhereItCannotWrite) {
  const testing::TemporaryFolder folder;
  const std::string file = folder.write("tensorboard", "no folder");
  EXPECT_THAT(testing::error_of([&] { EventFile events(file, 1); }), HasSubstr(file));
}

}  // namespace
}  // namespace seqconv::internal
