#include "base/crc32.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <string_view>
#include <vector>

namespace seqconv::internal {
namespace {

std::span<const std::byte> bytes_of_text(std::string_view text) {
  return std::as_bytes(std::span(text));
}

/// The check value of both sums' definitions.
TEST(Crc32, OfTheDigitsIsTheCheckValue) {
  EXPECT_EQ(crc32(bytes_of_text("123456789")), 0xCBF43926U);
  EXPECT_EQ(crc32c(bytes_of_text("123456789")), 0xE3069283U);
  EXPECT_EQ(crc32c({}), 0U);
}

/// RFC 3720, appendix B.4.
TEST(Crc32, CastagnolisIsThatOfTheStandard) {
  std::vector<unsigned char> bytes(32, 0);
  const auto sum = [&] { return crc32c(std::as_bytes(std::span(bytes))); };
  EXPECT_EQ(sum(), 0x8A9136AAU);
  bytes.assign(32, 0xFF);
  EXPECT_EQ(sum(), 0x62A8AB43U);
  std::iota(bytes.begin(), bytes.end(), static_cast<unsigned char>(0));
  EXPECT_EQ(sum(), 0x46DD794EU);
  std::reverse(bytes.begin(), bytes.end());
  EXPECT_EQ(sum(), 0x113FDB5CU);
}

}  // namespace
}  // namespace seqconv::internal
