#include "base/own_device.h"

#include <gmock/gmock.h>

#include "support/errors.h"

namespace seqconv::internal {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

TEST(OwnDevice, IsTheOneOfTheLocalRankWhereAllAreSeen) {
  for (const bool chosen : {false, true})
    for (int64_t rank = 0; rank < 4; ++rank)
      EXPECT_EQ(own_cuda_device(4, rank, chosen), rank);
  EXPECT_EQ(own_cuda_device(1, 0, /*chosen=*/false), 0);
}

TEST(OwnDevice, IsTheOnlyOneWhereProcessesWereGivenOneEach) {
  for (int64_t rank = 0; rank < 4; ++rank)
    EXPECT_EQ(own_cuda_device(1, rank, /*chosen=*/true), 0);
}

TEST(OwnDevice, IsNoneWhereProcessesAreMoreThanDevices) {
  const auto said = [](int64_t visible, int64_t rank, bool chosen) {
    return testing::error_of<Error>([&] { own_cuda_device(visible, rank, chosen); });
  };
  EXPECT_THAT(
      said(1, 3, /*chosen=*/false),
      AllOf(
          HasSubstr("process 3 of this machine needs CUDA device 3, but there is only cuda:0"),
          HasSubstr("no more processes on a machine")));
  EXPECT_THAT(said(2, 2, /*chosen=*/true), HasSubstr("but there are cuda:0 to cuda:1"));
}

TEST(SharedDevice, IsToldWithItsRanks) {
  const std::string other = "0000:1B:00.0 of node2\n5c";
  const std::string third = "0000:1C:00.0 of node1\n4b";
  const std::string one = "0000:1B:00.0 of node1\n4b";
  EXPECT_EQ(shared_device_fault({}), "");
  EXPECT_EQ(shared_device_fault({one, other, third}), "");
  // Two machines of one name.
  EXPECT_EQ(shared_device_fault({one, "0000:1B:00.0 of node1\n5c"}), "");
  EXPECT_THAT(
      shared_device_fault({other, one, third, one}),
      AllOf(
          HasSubstr("ranks 1 and 3 both have 0000:1B:00.0 of node1: set "),
          HasSubstr("CUDA_VISIBLE_DEVICES"),
          Not(HasSubstr("4b"))));
}

TEST(MachineName, IsThatOfOneStartOfTheMachine) {
  EXPECT_THAT(machine_name(), MatchesRegex("[^\n]+\n[-0-9a-f]{36}"));
  EXPECT_EQ(machine_name(), machine_name());
}

}  // namespace
}  // namespace seqconv::internal
