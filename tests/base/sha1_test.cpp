#include "base/sha1.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace seqconv::internal {
namespace {

/// The examples of FIPS 180 and, for a text that ends near a block's end, of
/// `sha1sum`.
TEST(Sha1, IsThatOfTheStandard) {
  EXPECT_EQ(sha1_hex("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(
      sha1_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
      "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
  EXPECT_EQ(sha1_hex(""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  EXPECT_EQ(sha1_hex(std::string(1000000, 'a')), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
  const std::pair<size_t, const char*> near_a_blocks_end[] = {
      {55, "cef734ba81a024479e09eb5a75b6ddae62e6abf1"},
      {56, "901305367c259952f4e7af8323f480d59f81335b"},
      {63, "0ddc4e0cccd9a12850deb5abb0853a4425559fec"},
      {64, "bb2fa3ee7afb9f54c6dfb5d021f14b1ffe40c163"},
      {65, "78c741ddc482e4cdf8c474a0876347a0905b6233"},
  };
  for (const auto& [size, digest] : near_a_blocks_end)
    EXPECT_EQ(sha1_hex(std::string(size, 'x')), digest) << size;
}

}  // namespace
}  // namespace seqconv::internal
