#include "text/glossaries.h"

#include <gmock/gmock.h>

#include "base/characters.h"
#include "base/error.h"
#include "base/utf8.h"
#include "support/errors.h"
#include "text/python_expression.h"

// Glossaries are read as Python's re reads them: each outcome here is that of re.fullmatch.
namespace seqconv::internal {
namespace {

using ::testing::ElementsAre;
using testing::error_of;

bool matches(const std::string& glossary, const std::string& text) {
  return Glossaries({glossary}).is_whole(text);
}

TEST(Glossaries, RepeatAsPythonDoes) {
  EXPECT_TRUE(matches("ab{,2}c", "ac"));
  EXPECT_TRUE(matches("ab{,2}c", "abbc"));
  EXPECT_FALSE(matches("ab{,2}c", "abbbc"));
  EXPECT_FALSE(matches("ab{,2}c", "ab{,2}c"));
  EXPECT_TRUE(matches("ab{,}c", "abbbbc"));
  EXPECT_TRUE(matches("[ab]{,2}", "ba"));
  EXPECT_TRUE(matches("a{1,2}b{3}c{2,}", "aabbbcccc"));
  // These are characters.
  for (const char* text : {"a{,x}", "a{", "a{,2", "{a}"})
    EXPECT_TRUE(matches(text, text)) << text;
  EXPECT_TRUE(matches("a\\{,2}", "a{,2}"));
  EXPECT_TRUE(matches("[]{,2}]+", ",]2{}"));
  EXPECT_TRUE(matches("(?#[)a{,2}", "aa"));
}

TEST(Glossaries, HaveTheWhiteSpaceOfPython) {
  const Glossaries space({"\\s"}), none({"\\S"}), inside({"[\\sx]"}), outside({"[^\\sx]"}),
      none_inside({"[\\S\\n]"});
  for (char32_t c = 0; c < 0x3100; ++c) {
    const std::string text = encode_utf8(std::u32string(1, c));
    EXPECT_EQ(space.is_whole(text), is_space(c)) << uint32_t{c};
    EXPECT_EQ(none.is_whole(text), !is_space(c)) << uint32_t{c};
    EXPECT_EQ(inside.is_whole(text), is_space(c) || c == 'x') << uint32_t{c};
    EXPECT_EQ(outside.is_whole(text), !is_space(c) && c != 'x') << uint32_t{c};
    EXPECT_EQ(none_inside.is_whole(text), !is_space(c) || c == '\n') << uint32_t{c};
  }
  EXPECT_TRUE(matches("\\S", "\U0010FFFF"));
  EXPECT_TRUE(matches("a\\vb", "a\vb"));
  EXPECT_FALSE(matches("a[\\v]b", "a\u2028b"));
  EXPECT_FALSE(matches("a\\Z", "a\n"));
}

TEST(Glossaries, KnowPythonsNumbersOfCharacters) {
  EXPECT_TRUE(matches("\\u00e4[\\u00F6-\\u00FC]+", "äöü"));
  EXPECT_TRUE(matches("\\U0001F600", "😀"));
  EXPECT_TRUE(matches("\\\\u00e4", "\\u00e4"));
  EXPECT_TRUE(matches("\\u002Ax", "*x"));
  for (const char* wrong : {"\\u12", "\\U0001F60", "\\uD800", "\\UFFFFFFFF", "\\uxyzw"})
    EXPECT_THAT(
        error_of<UsageError>([&] { Glossaries({wrong}); }),
        ::testing::StartsWith(concat("the glossary '", wrong, "' is no regular expression: ")));
}

TEST(Glossaries, KeepWhatPcre2ReadsAlike) {
  for (const char* same :
       {"[[:alpha:]\\]]+x{2}",
        "\\Qa{,2}\\s\\E",
        "(?P<n>a|b)(?P=n)\\1\\d\\w\\b$",
        "[^]\\\\]\\[a-z]",
        "[",
        "[[:",
        "a\\",
        "(?#"})
    EXPECT_EQ(to_pcre2(same), same);
  EXPECT_EQ(to_pcre2("[[:alpha:]\\v]{,3}"), "[[:alpha:]\\x{B}]{0,3}");
}

TEST(Glossaries, AreIsolatedWhereTheyAreFound) {
  const Glossaries glossaries({"<{,2}[a-z]{,3}>", "\\u20AC"});
  EXPECT_THAT(glossaries.isolate("1<<ab>x>€2"), ElementsAre("1", "<<ab>", "x>", "€", "2"));
  EXPECT_TRUE(glossaries.is_whole("€"));
  EXPECT_FALSE(glossaries.is_whole("€€"));
}

}  // namespace
}  // namespace seqconv::internal
