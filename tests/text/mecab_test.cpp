#include "text/mecab.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/errors.h"
#include "support/temporary_folder.h"

namespace seqconv::internal {
namespace {

using testing::error_of;
using ::testing::HasSubstr;

TEST(MecabTokenizers, SayWhatTheyLack) {
  const testing::TemporaryFolder folder;
  const auto open = [&] { MecabTokenizer tokenizer(folder.path()); };
  if (has_mecab())
    EXPECT_THAT(error_of(open), HasSubstr("a dictionary of MeCab was wanted"));
  else
    EXPECT_THAT(
        error_of<UsageError>(open),
        ::testing::AllOf(HasSubstr("cmake -DSEQCONV_MECAB=ON"), HasSubstr("libmecab-dev")));
}

}  // namespace
}  // namespace seqconv::internal
