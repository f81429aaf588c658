#include "text/corpus/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/errors.h"

namespace seqconv::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Batch, PadsOnTheRightAndShiftsTheTarget) {
  const Batch batch = make_batch({{7, 8, 9}, {4}}, {{5}, {6, 7}});
  EXPECT_EQ(batch.rows, 2);
  EXPECT_EQ(batch.source_steps, 4);
  EXPECT_EQ(batch.target_steps, 3);
  EXPECT_THAT(batch.source, ElementsAre(7, 8, 9, 2, 4, 2, 1, 1));
  EXPECT_THAT(batch.source_lengths, ElementsAre(4, 2));
  EXPECT_THAT(batch.target_in, ElementsAre(2, 5, 1, 2, 6, 7));
  EXPECT_THAT(batch.target_out, ElementsAre(5, 2, 1, 6, 7, 2));
  EXPECT_THAT(batch.target_lengths, ElementsAre(2, 3));
  EXPECT_EQ(batch.target_tokens, 5);
  EXPECT_THAT(batch.pairs, ElementsAre(0, 1));
}

TEST(Batch, WithoutTargetsFillsTheSourceSideAlone) {
  const Batch batch = make_batch({{7}, {}}, {});
  EXPECT_THAT(batch.source, ElementsAre(7, 2, 2, 1));
  EXPECT_THAT(batch.source_lengths, ElementsAre(2, 1));
  EXPECT_EQ(batch.target_steps, 0);
  EXPECT_EQ(batch.target_tokens, 0);
  EXPECT_THAT(batch.target_in, IsEmpty());
  EXPECT_THAT(batch.target_out, IsEmpty());
}

TEST(Batch, OfNothingIsEmpty) {
  const Batch batch = make_batch({}, {});
  EXPECT_EQ(batch.rows, 0);
  EXPECT_EQ(batch.source_steps, 0);
  EXPECT_THAT(batch.source, IsEmpty());
}

TEST(Batch, RefusesSidesOfDifferentSize) {
  EXPECT_THAT(
      testing::error_of([] {
        make_batch({{4}, {5}}, {{4}});
      }),
      HasSubstr("as many targets as sources or none, but got 1 for 2"));
}

}  // namespace
}  // namespace seqconv::internal
