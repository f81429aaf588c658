#include "base/characters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unicode/locid.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>
#include <unicode/uscript.h>
#include <utf8proc.h>

#include "base/utf8.h"

// ICU is the witness: its version 72 has Unicode 15.0 too.
namespace seqconv::internal {
namespace {

using ::testing::ElementsAre;

template <class Check>
void for_all_code_points(Check check) {
  for (char32_t c = 0; c <= 0x10FFFF && !::testing::Test::HasFatalFailure(); ++c)
    check(c, static_cast<UChar32>(c));
}

TEST(Characters, TheVersionsOfUnicodeAreTheSame) {
  EXPECT_STREQ(utf8proc_unicode_version(), "15.0.0");
  EXPECT_STREQ(U_UNICODE_VERSION, "15.0");
}

TEST(Characters, CategoriesAreThoseOfIcu) {
  for_all_code_points([](char32_t c, UChar32 u) {
    const uint32_t mask = U_GET_GC_MASK(u);
    ASSERT_EQ(is_letter(c), (mask & U_GC_L_MASK) != 0) << u;
    ASSERT_EQ(is_mark(c), (mask & U_GC_M_MASK) != 0) << u;
    ASSERT_EQ(is_number(c), (mask & U_GC_N_MASK) != 0) << u;
    ASSERT_EQ(is_decimal_digit(c), (mask & U_GC_ND_MASK) != 0) << u;
    ASSERT_EQ(is_other_number(c), (mask & U_GC_NO_MASK) != 0) << u;
    ASSERT_EQ(is_punctuation(c), (mask & U_GC_P_MASK) != 0) << u;
    ASSERT_EQ(is_symbol(c), (mask & U_GC_S_MASK) != 0) << u;
    ASSERT_EQ(is_currency_symbol(c), (mask & U_GC_SC_MASK) != 0) << u;
  });
}

TEST(Characters, PropertiesAreThoseOfIcu) {
  for_all_code_points([](char32_t c, UChar32 u) {
    const bool separator = c >= 0x1C && c <= 0x1F;
    ASSERT_EQ(is_space(c), u_isUWhiteSpace(u) || separator) << u;
    ASSERT_EQ(is_alphabetic(c), u_isUAlphabetic(u) != 0) << u;
    ASSERT_EQ(is_lowercase(c), u_isULowercase(u) != 0) << u;
    ASSERT_EQ(
        is_default_ignorable(c), u_hasBinaryProperty(u, UCHAR_DEFAULT_IGNORABLE_CODE_POINT) != 0)
        << u;
  });
}

UnicodeAge age_by_icu(UChar32 u) {
  UVersionInfo age{};
  u_charAge(u, age);
  const int version = 10 * age[0] + age[1];
  if (version == 0 || version > 90)
    return UnicodeAge::kLater;
  return version > 70 ? UnicodeAge::kUpTo9 : UnicodeAge::kUpTo7;
}

Script script_by_icu(UChar32 u) {
  UErrorCode status = U_ZERO_ERROR;
  switch (uscript_getScript(u, &status)) {
    case USCRIPT_HAN:
      return Script::kHan;
    case USCRIPT_HIRAGANA:
    case USCRIPT_KATAKANA:
      return Script::kKana;
    case USCRIPT_HANGUL:
      return Script::kHangul;
    case USCRIPT_THAI:
      return Script::kThai;
    case USCRIPT_LAO:
      return Script::kLao;
    case USCRIPT_KHMER:
      return Script::kKhmer;
    case USCRIPT_MYANMAR:
      return Script::kMyanmar;
    case USCRIPT_TIBETAN:
      return Script::kTibetan;
    default:
      return Script::kOther;
  }
}

TEST(Characters, AgesAndScriptsAreThoseOfIcu) {
  for_all_code_points([](char32_t c, UChar32 u) {
    ASSERT_EQ(unicode_age(c), age_by_icu(u)) << u;
    ASSERT_EQ(script_of(c), script_by_icu(u)) << u;
    ASSERT_EQ(is_used_with(c, Script::kHan), uscript_hasScript(u, USCRIPT_HAN) != 0) << u;
    ASSERT_EQ(is_used_with(c, Script::kHangul), uscript_hasScript(u, USCRIPT_HANGUL) != 0) << u;
    ASSERT_EQ(
        is_used_with(c, Script::kKana),
        uscript_hasScript(u, USCRIPT_HIRAGANA) || uscript_hasScript(u, USCRIPT_KATAKANA))
        << u;
    ASSERT_FALSE(is_used_with(c, Script::kThai)) << u;
  });
}

std::string lower_by_icu(const std::string& text) {
  std::string out;
  return icu::UnicodeString::fromUTF8(text).toLower(icu::Locale::getRoot()).toUTF8String(out);
}

TEST(Characters, LowerCaseIsThatOfIcu) {
  // Alone, and around a sigma that it may make a final one.
  const std::string sigma = "\u03A3";
  for (char32_t c = 0x80; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF)
      continue;
    const std::string text = encode_utf8(std::u32string_view(&c, 1));
    const std::string around = "A" + text + sigma + " A" + sigma + text + " A" + sigma + text +
        "a " + text + sigma + " " + text;
    ASSERT_EQ(to_lower(around), lower_by_icu(around)) << static_cast<uint32_t>(c);
  }
}

TEST(Characters, NoneHaveThePropertiesBeyondTheLast) {
  for (const char32_t c : {char32_t{0x110000}, char32_t{0xFFFFFFFF}}) {
    EXPECT_FALSE(is_letter(c) || is_alphabetic(c) || is_space(c) || is_used_with(c, Script::kHan));
    EXPECT_EQ(script_of(c), Script::kOther);
  }
}

TEST(Spaces, WordsAreSplitAtUnicodeWhiteSpace) {
  EXPECT_THAT(
      split_words("  a\tb\xC2\xA0"
                  "c\xE3\x80\x80\xC3\xA9\x1F"
                  "d\xE2\x80\xA8"),
      ElementsAre("a", "b", "c", "\xC3\xA9", "d"));
  EXPECT_TRUE(split_words(" \xC2\x85 ").empty());
  // Zero-width space and byte-order mark are no white space.
  EXPECT_EQ(
      split_words("a\xE2\x80\x8B"
                  "b\xEF\xBB\xBF"
                  "c")
          .size(),
      1u);
}

TEST(Spaces, LinesKeepTheirEnds) {
  EXPECT_THAT(
      split_lines("a\r\n\rb\n\nc\vd\fe\x1C\x1D\x1E f\xC2\x85g\u2028\u2029h\t\x1Fi"),
      ElementsAre(
          "a\r\n",
          "\r",
          "b\n",
          "\n",
          "c\v",
          "d\f",
          "e\x1C",
          "\x1D",
          "\x1E",
          " f\xC2\x85",
          "g\u2028",
          "\u2029",
          "h\t\x1Fi"));
  EXPECT_TRUE(split_lines("").empty());
  EXPECT_THAT(split_lines("é\xE2\x80\n"), ElementsAre("é\xE2\x80\n"));
}

TEST(Spaces, BlankTextHasNoWords) {
  for (const char* blank : {"", " ", " \t\r\n", "\xC2\xA0", "\xE3\x80\x80 "})
    EXPECT_TRUE(is_blank(blank)) << "'" << blank << "'";
  for (const char* text : {"a", "  a", "\xC2\xA0.", "\xE2\x80\x8B", "\xFF"})
    EXPECT_FALSE(is_blank(text)) << "'" << text << "'";
}

TEST(Spaces, AreTrimmedAtBothEnds) {
  EXPECT_EQ(trim_start("\u3000 \ta b\u00A0"), "a b\u00A0");
  EXPECT_EQ(trim_end("\u00A0a b\u2028\n\u3000"), "\u00A0a b");
  EXPECT_EQ(trim_end("\u00A0\u2028"), "");
  EXPECT_EQ(trim_end("a\x80 "), "a\x80");
  EXPECT_EQ(trim_start(""), "");
}

TEST(LowerCase, UsesTheFullMappingOfTheRootLocale) {
  EXPECT_EQ(to_lower("Hello, WORLD 42"), "hello, world 42");
  EXPECT_EQ(to_lower("GRÖSSE Straße ÀÉ"), "grösse straße àé");
  EXPECT_EQ(to_lower("\xC4\xB0"),
            "i\xCC\x87");                       // I with a dot: two code points
  EXPECT_EQ(to_lower("ΟΔΟΣ ΣΑΣ"), "οδος σας");  // final sigma
  EXPECT_EQ(to_lower("Ⅷ Ǆ"), "ⅷ ǆ");
  EXPECT_EQ(to_lower(""), "");
}

TEST(LowerCase, GrowsWhereTheLowerCaseIsLonger) {
  std::string upper;
  std::string lower;
  for (int i = 0; i < 5000; ++i) {
    upper += "\xC8\xBA";      // U+023A, two bytes
    lower += "\xE2\xB1\xA5";  // U+2C65, three bytes
  }
  EXPECT_EQ(to_lower(upper), lower);
}

}  // namespace
}  // namespace seqconv::internal
