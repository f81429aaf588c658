#include "text/moses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <random>
#include <vector>

#include "base/utf8.h"
#include "support/errors.h"
#include "support/rounds.h"

namespace seqconv::internal {
namespace {

using testing::error_of;
using ::testing::HasSubstr;

struct Case {
  const char* language;
  const char* line;
  const char* tokens;
};

void expect_tokens(const std::vector<Case>& cases, const MosesOptions& options = {}) {
  for (const auto& [language, line, tokens] : cases)
    EXPECT_EQ(MosesTokenizer(language, options).tokenize(line), tokens) << language << ": " << line;
}

void expect_text(const std::vector<Case>& cases) {
  for (const auto& [language, tokens, text] : cases)
    EXPECT_EQ(MosesDetokenizer(language).detokenize(tokens), text) << language << ": " << tokens;
}

// The expected values are those of sacremoses 0.1.1, but for the lines of Czech
// decimals (docs/tokenization.md).

TEST(MosesTokenizer, SignsAreTokens) {
  expect_tokens(
      {{"en", "Hello, world!", "Hello , world !"},
       {"en", "50% of $5 and €6", "50 % of $ 5 and € 6"},
       {"en", "x & y | z < > [ ] \" '", "x & y | z < > [ ] \" '"},
       {"en", "me@example.com", "me @ example.com"},
       {"en", "http://x.org/a-b?c=d&e", "http : / / x.org / a-b ? c = d & e"},
       {"en", "`a` ``b``", "`a` ``b``"},
       {"fr", "C'est «bien» : oui ?", "C' est « bien » : oui ?"},
       {"es", "¿Qué?", "¿ Qué ?"},
       {"en", "😀👍🏽 ok", "😀 👍 🏽 ok"}});
}

TEST(MosesTokenizer, WhiteSpaceIsOneBlankAndControlCharactersVanish) {
  expect_tokens(
      {{"en", "", ""},
       {"en", " \t\xC2\xA0\xE3\x80\x80 ", ""},
       {"en", "a\xC2\xA0\x62\tc  d ", "a b c d"},
       {"en", "\x01 a\x02 \x03 b\x1B", "a b"}});
  EXPECT_EQ(MosesTokenizer("en").tokenize(std::string_view("a\0b", 3)), "ab");
}

TEST(MosesTokenizer, CommasStayWithinNumbersOnly) {
  expect_tokens(
      {{"en", "a,b,c 1,000 1, 2", "a , b , c 1,000 1 , 2"},
       {"en", "x,,5 x,,,5 1,,5", "x , ,5 x , , , 5 1 , , 5"},
       {"en", ",5 a ,5", ",5 a , 5"},
       {"en", "Ⅷ,5 ½,5", "Ⅷ,5 ½ , 5"},
       {"en", "١٢٣,٤ 7,", "١٢٣,٤ 7 ,"}});
}

TEST(MosesTokenizer, DotsStayWithAbbreviationsAndWithinWords) {
  expect_tokens(
      {{"en", "Mr. Smith is in the U.S. now.", "Mr. Smith is in the U.S. now ."},
       {"en", "St. Paul. Dr.", "St. Paul . Dr."},
       {"en", "e.g. this i.e.", "e.g. this i.e."},
       {"en", "Version 2.0.", "Version 2.0 ."},
       {"en", "One. two. Three", "One. two . Three"},
       {"en", "(see p. 5)", "( see p . 5 )"},
       {"en", ".", "."},
       {"de", "Am 3. Mai usw. Ende.", "Am 3. Mai usw. Ende ."},
       {"de", "Das ist z.B. ein Haus.", "Das ist z.B. ein Haus ."},
       {"fr", "M. Dupont etc.", "M. Dupont etc."},
       {"ru", "д. 5 г. Москва.", "д. 5 г. Москва ."},
       {"fi", "EU:n 5:ssä", "EU : n 5 : ssä"}});
}

TEST(MosesTokenizer, SomeAbbreviationsStayBeforeNumbersOnly) {
  expect_tokens(
      {{"en", "No. 5 and No. A", "No. 5 and No . A"},
       {"en", "Art. 7 pp. Z", "Art. 7 pp . Z"},
       {"en", "It is No.", "It is No ."},
       {"nl", "Nr. 5 Nr. A", "Nr. 5 Nr . A"}});
}

TEST(MosesTokenizer, RunsOfDotsStayTogether) {
  expect_tokens(
      {{"en", "wait... what?", "wait ... what ?"},
       {"en", "A.... b", "A .... b"},
       {"en", "Mr... 5..6", "Mr ... 5 .. 6"},
       {"en", "..", ".."}});
}

TEST(MosesTokenizer, ApostrophesGoByLanguage) {
  expect_tokens(
      {{"en", "don't", "don 't"},
       {"en", "rock'n'roll", "rock 'n'roll"},
       {"en", "the 1990's", "the 1990 's"},
       {"en", "dogs' bones", "dogs ' bones"},
       {"en", "'Tis so", "'Tis so"},
       {"en", "say ''no''", "say ' ' no ' '"},
       {"fr", "L'homme n'est pas là.", "L' homme n' est pas là ."},
       {"fr", "5' 6 l' homme", "5 ' 6 l ' homme"},
       {"it", "L'uomo dell'anno.", "L' uomo dell' anno ."},
       {"de", "Geht's gut?", "Geht ' s gut ?"},
       {"es", "D'Artagnan", "D ' Artagnan"}});
}

TEST(MosesTokenizer, AFullStopWithinQuotesAtTheEndIsAToken) {
  expect_tokens({{"en", "he said 'foo.'", "he said ' foo . '"}, {"en", ".'", ". '"}});
}

TEST(MosesTokenizer, ScriptsWithoutBlanksAreSplitButInTheirOwnLanguage) {
  expect_tokens(
      {{"en", "日本語 text", "日 本 語 text"},
       {"zh", "我喜欢。你好,world", "我喜欢。你好 , world"},
       {"ja", "私は、カタカナ。", "私は、カタカナ。"},
       {"ja", "한국", "한 국"},
       {"ko", "한국어 입니다.", "한국어 입니다 ."},
       {"cjk", "漢字한국カナ!", "漢字한국カナ !"},
       {"hi", "हिन्दी।", "हिन्दी ।"}});
}

TEST(MosesTokenizer, HyphensSplitOnlyWhenAskedTo) {
  expect_tokens({{"en", "well-known a-b-c - x--y", "well-known a-b-c - x--y"}});
  expect_tokens(
      {{"en", "well-known a-b-c - x--y -z", "well @-@ known a @-@ b @-@ c - x--y -z"},
       {"de", "Straße-Nr. 5", "Straße @-@ Nr. 5"}},
      {.split_dashes = true});
}

TEST(MosesTokenizer, EscapesWhenAskedTo) {
  expect_tokens(
      {{"en", "& | < > [ ] \" x'y", "&amp; &#124; &lt; &gt; &#91; &#93; &quot; x &apos;y"},
       {"fr", "l'&amp;", "l &apos; &amp; amp ;"}},
      {.escape = true});
}

TEST(MosesTokenizer, UnknownLanguagesAreAsEnglishButForApostrophes) {
  expect_tokens(
      {{"xx", "Mr. X isn't.", "Mr. X isn ' t ."}, {"el", "Mr. X isn't.", "Mr. X isn ' t ."}});
}

TEST(MosesTokenizer, LanguagesMustBeCodes) {
  for (const char* bad : {"", "d", "DE", "german", "de_DE", "d1", "d\xC3\xA4"}) {
    const auto message = error_of([&] { MosesTokenizer{bad}; });
    EXPECT_THAT(message, HasSubstr("two or three small letters"));
    EXPECT_THAT(message, HasSubstr(std::string("but got '") + bad));
    EXPECT_FALSE(error_of([&] { MosesDetokenizer{bad}; }).empty());
  }
}

TEST(MosesDetokenizer, SignsGoToTheirWords) {
  expect_text(
      {{"en", "", ""},
       {"en", " \t ", ""},
       {"en", "Hello , world !", "Hello, world!"},
       {"en", "( see 5 % ) $ 5", "(see 5%) $5"},
       {"en", "¿ qué ?", "¿qué?"},
       {"en", ", x", ", x"}});
}

TEST(MosesDetokenizer, QuotationMarksOpenAndCloseInTurn) {
  expect_text(
      {{"en", "he said \" yes \" and ' no '", "he said \"yes\" and 'no'"},
       {"en", "` a `", "`a`"},
       {"en", "„ a “ b ”", "„a“ b ”"},
       {"cs", "„ a “ b “", "„a“ b“"},
       {"en", "\" a ' b", "\"a 'b"}});
}

TEST(MosesDetokenizer, ApostrophesGoByLanguage) {
  expect_text(
      {{"en", "I 'm", "I'm"},
       {"en", "' tis", "'tis"},
       {"en", "the dogs ' bones", "the dogs' bones"},
       {"de", "I 'm", "I 'm"},
       {"fr", "l' homme : oui ?", "l'homme : oui ?"},
       {"fr", "d' 5 % ;;", "d' 5 %;;"},
       {"it", "l' uomo", "l'uomo"},
       {"ga", "d' fhear", "d'fhear"},
       {"es", "l' uomo", "l' uomo"}});
}

TEST(MosesDetokenizer, HyphensAndEscapesAreUndone) {
  expect_text(
      {{"en", "a @-@ b @-@ @-@ c", "a-b-@-@ c"},
       {"en", "@-@ x @-@", "-x-"},
       {"en", "&amp;lt; &quot; x &quot; &#91; y &#93;", "&lt; \"x\" [y]"},
       {"en", "a &bar; b &bra; c &ket; &x", "a | b [c] &x"}});
}

TEST(MosesDetokenizer, SomeLanguagesHaveRulesOfTheirOwn) {
  expect_text(
      {{"en", "日本 語 text 漢 字", "日本語 text 漢字"},
       {"ko", "한국 어 漢 字", "한국 어 漢 字"},
       {"cs", "asi 1 , 5 x", "asi 1,5 x"},
       {"cs", "v roce 1990 a 1995 .", "v roce 1990 a 1995."},
       {"de", "asi 1 , 5 x", "asi 1, 5 x"}});
}

/// Whether the words have single blanks between them and none around.
bool is_tidy(std::string_view text) {
  return text.find("  ") == std::string_view::npos && !text.starts_with(' ') &&
      !text.ends_with(' ');
}

TEST(Moses, AnyBytesGiveTidyUtf8) {
  const std::vector<std::string> parts = {
      "a",    "Dr",       "5",     ".",  ",",  "'",    "\"",   "-",
      "&",    "@-@",      " ",     "é",  "漢", "\xFF", "\xC3", "\xF0\x9F\x98",
      "\x01", "\xC2\x85", "&amp;", "``", "„"};
  std::mt19937 random(5);
  for (const char* language : {"en", "fr", "cs", "ja", "de"}) {
    const MosesTokenizer tokenizer(language, {.escape = true, .split_dashes = true});
    const MosesDetokenizer detokenizer(language);
    for (int round = testing::rounds(2000); round > 0; --round) {
      std::string line;
      for (unsigned n = random() % 20; n > 0; --n)
        line += parts[random() % parts.size()];
      const std::string tokens = tokenizer.tokenize(line);
      EXPECT_EQ(find_invalid_utf8(tokens), std::string::npos);
      EXPECT_TRUE(is_tidy(tokens)) << tokens;
      EXPECT_TRUE(is_tidy(detokenizer.detokenize(tokens)));
      detokenizer.detokenize(line);
    }
  }
}

/// Of the processor, whatever else runs.
double seconds_for(const std::string& line) {
  const std::clock_t start = std::clock();
  const std::string tokens = MosesTokenizer("en", {.split_dashes = true}).tokenize(line);
  MosesDetokenizer("en").detokenize(tokens);
  MosesDetokenizer("en").detokenize(line);
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

TEST(Moses, HugeLinesTakeLinearTime) {
  // What takes a tenth of a second takes ten with quadratic steps.
  for (const char* part :
       {"x",
        ".",
        ". ",
        "a.",
        "-",
        "a-",
        "&",
        "'",
        "a'",
        ",",
        "1,",
        "\"",
        "@-@ ",
        "''\" ",
        "漢",
        "Dr. ",
        "&amp"}) {
    std::string line;
    while (line.size() < 300'000)
      line += part;
    EXPECT_LT(seconds_for(line), 3) << part;
  }
}

}  // namespace
}  // namespace seqconv::internal
