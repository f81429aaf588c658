#include "base/utf8.h"

#include <gtest/gtest.h>
#include <unicode/utf8.h>

#include <random>

#include "base/characters.h"
#include "base/one_line.h"

namespace seqconv::internal {
namespace {

constexpr size_t kValid = std::string_view::npos;

TEST(Utf8, AcceptsTheFirstAndLastCodePointOfEveryLength) {
  for (const char* text :
       {"\x01",
        "\x7F",
        "\xC2\x80",
        "\xDF\xBF",
        "\xE0\xA0\x80",
        "\xED\x9F\xBF",
        "\xEE\x80\x80",
        "\xEF\xBF\xBF",
        "\xF0\x90\x80\x80",
        "\xF4\x8F\xBF\xBF"})
    EXPECT_EQ(find_invalid_utf8(text), kValid) << text;
  EXPECT_EQ(find_invalid_utf8(std::string_view("\0", 1)), kValid);
}

TEST(Utf8, FindsTheFirstByteOfIllFormedSequences) {
  for (const char* bad :
       {"\x80",              // continuation without a start
        "\xC0\xAF",          // overlong
        "\xC1\xBF",          // overlong
        "\xE0\x9F\xBF",      // overlong
        "\xF0\x8F\xBF\xBF",  // overlong
        "\xED\xA0\x80",      // surrogate
        "\xED\xBF\xBF",      // surrogate
        "\xF4\x90\x80\x80",  // above U+10FFFF
        "\xF5\x80\x80\x80",
        "\xFF",
        "\xC3",             // cut off
        "\xE2\x82",         // cut off
        "\xF0\x9F\x98"}) {  // cut off
    EXPECT_EQ(find_invalid_utf8(bad), 0u);
    EXPECT_EQ(find_invalid_utf8(std::string("a\xC3\xA9") + bad + "b"), 3u);
  }
}

TEST(Utf8, ReplacementMakesAnyBytesValidAndKeepsValidText) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes;
    for (int i = 0; i < 24; ++i)
      bytes += static_cast<char>(random() % 4 == 0 ? 'a' : random());
    const std::string replaced = replace_invalid_utf8(bytes);
    EXPECT_EQ(find_invalid_utf8(replaced), kValid);
    EXPECT_EQ(replaced == bytes, find_invalid_utf8(bytes) == kValid);
    EXPECT_EQ(replace_invalid_utf8(replaced), replaced);
    EXPECT_EQ(find_invalid_utf8(one_line(bytes)), kValid);
    EXPECT_EQ(find_invalid_utf8(to_lower(replaced)), kValid);
    std::string joined;
    for (std::string_view character : split_characters(bytes))
      joined += character;
    EXPECT_EQ(joined, bytes);
  }
}

/// Code points as ICU reads them.
std::u32string decode_with_icu(std::string_view text) {
  std::u32string out;
  for (size_t i = 0; i < text.size();) {
    UChar32 c = 0;
    U8_NEXT_OR_FFFD(text.data(), i, text.size(), c);
    out += static_cast<char32_t>(c);
  }
  return out;
}

std::u32string decode_backwards(std::string_view text) {
  std::u32string out;
  for (size_t position = text.size(); position > 0;)
    out.insert(out.begin(), previous_code_point(text, position));
  return out;
}

TEST(Utf8, ReadsAnyBytesAsIcu) {
  std::mt19937 random(11);
  // Bytes at the bounds of sequences, more often than the others.
  constexpr std::string_view kBounds =
      "\x7F\x80\x8F\x90\x9F\xA0\xBF\xC0\xC1\xC2\xDF\xE0\xE1\xED\xEF\xF0\xF4\xF5\xFF";
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes;
    for (int i = 0; i < 8; ++i)
      bytes += random() % 2 == 0 ? kBounds[random() % kBounds.size()] : static_cast<char>(random());
    const std::u32string wanted = decode_with_icu(bytes);
    ASSERT_EQ(decode_utf8(bytes), wanted) << ::testing::PrintToString(bytes);
    ASSERT_EQ(decode_utf8(replace_invalid_utf8(bytes)), wanted);
    ASSERT_EQ(split_characters(bytes).size(), wanted.size());
  }
}

TEST(Utf8, WritesAndReadsEveryCodePoint) {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF)
      continue;
    const std::string text = encode_utf8(std::u32string_view(&c, 1));
    ASSERT_EQ(decode_utf8(text), std::u32string(1, c));
    ASSERT_EQ(decode_backwards("a" + text), (std::u32string{U'a', c}));
    ASSERT_EQ(decode_with_icu(text), std::u32string(1, c));
  }
}

TEST(Utf8, ReadsBackwardsPastIllFormedBytes) {
  EXPECT_EQ(decode_backwards("a\xE2\x80z"), U"a\uFFFDz");
  EXPECT_EQ(decode_backwards("\x80\x80\x80\x80\x80"), std::u32string(5, 0xFFFD));
  EXPECT_EQ(decode_backwards("\xF0\xE2\x80\xA8"), U"\uFFFD\u2028");
}

}  // namespace
}  // namespace seqconv::internal
