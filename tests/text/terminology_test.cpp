#include "text/terminology.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/temporary_folder.h"

namespace seqconv::internal {
namespace {

Terminology made(std::vector<Term> terms) {
  return Terminology(std::move(terms));
}

/// The terms that are found, as "source=target" with blanks between.
std::string found(const Terminology& terms, std::string_view line) {
  std::string all;
  for (const TermInText& term : terms.find(line))
    all += concat(
        all.empty() ? "" : " ", line.substr(term.begin, term.end - term.begin), "=", term.target);
  return all;
}

std::string message(const std::vector<Term>& terms) {
  try {
    Terminology read(terms, "terms.tsv");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Terminology, FindsWholeWordsAndTheLongestTerms) {
  const Terminology terms = made(
      {{"net", "Netz"},
       {"neural net", "neuronales Netz"},
       {"C++", "C plus plus"},
       {".NET", "Punkt"}});
  EXPECT_EQ(found(terms, "a neural net, nets, net-work"), "neural net=neuronales Netz net=Netz");
  EXPECT_EQ(found(terms, "internet net"), "net=Netz");
  EXPECT_EQ(found(terms, "C++ and .NET"), "C++=C plus plus .NET=Punkt");
  EXPECT_EQ(found(terms, ""), "");
  EXPECT_EQ(found(Terminology(), "net"), "");
}

TEST(Terminology, SmallLettersFindAnyCaseAndCapitalsTheirOwn) {
  const Terminology terms = made({{"apple", "Apfel"}, {"Apple", "Apple"}, {"IT", "EDV"}});
  EXPECT_EQ(found(terms, "apple APPLE Apple"), "apple=Apfel APPLE=Apfel Apple=Apple");
  EXPECT_EQ(found(terms, "It is IT"), "IT=EDV");
  EXPECT_EQ(found(made({{"straße", "street"}}), "STRASSE Straße"), "STRASSE=street Straße=street");
}

TEST(Terminology, WhiteSpaceIsOneBlank) {
  const Terminology terms = made({{"New York", "Neuyork"}});
  EXPECT_EQ(terms.find("in New \xC2\xA0 York.").size(), 1u);
  EXPECT_EQ(terms.find("in NewYork.").size(), 0u);
}

TEST(Terminology, ScriptsWithoutBlanksHaveNoWords) {
  const Terminology terms = made({{"犬", "hound"}, {"サーバー", "server"}});
  EXPECT_EQ(found(terms, "大きい犬とサーバーです"), "犬=hound サーバー=server");
}

TEST(Terminology, OnesOfARequestComeBeforeThoseOfAModel) {
  const Terminology own = made({{"big dog", "giant"}});
  const Terminology all = made({{"dog", "hound"}, {"cat", "tom"}});
  const auto terms = find_terms("a big dog, a dog and a cat", own, all);
  ASSERT_EQ(terms.size(), 3u);
  EXPECT_EQ(terms[0].target, "giant");
  EXPECT_EQ(terms[1].target, "hound");
  EXPECT_EQ(terms[2].target, "tom");
}

TEST(Terminology, ASourceHasOneTranslation) {
  EXPECT_EQ(message({{"dog", "Hund"}, {"dog", "Hund"}}), "");
  EXPECT_EQ(
      message({{"dog", "Hund"}, {"dog", "Köter"}}),
      "terms.tsv: 'dog' must have one translation, but has 'Hund' and 'Köter'");
  EXPECT_EQ(
      message({{"dog", " "}}),
      "terms.tsv: both sides of a term must be text of one line in UTF-8, but got ' '");
  EXPECT_NE(message({{"a\nb", "c"}}), "");
  EXPECT_NE(message({{"a\xFF", "c"}}), "");
}

TEST(Terminology, AFileHasATermPerLine) {
  const testing::TemporaryFolder folder;
  const auto terms = read_terms(folder.write(
      "terms.tsv",
      "\xEF\xBB\xBF"
      "dog\tHund\r\n\n cat \t Katze\n"));
  ASSERT_EQ(terms.size(), 2u);
  EXPECT_EQ(terms[0].source, "dog");
  EXPECT_EQ(terms[0].target, "Hund");
  EXPECT_EQ(terms[1].source, "cat");
  EXPECT_EQ(terms[1].target, "Katze");
  for (const char* bad : {"dog", "dog\tHund\tn", "\tHund"}) {
    EXPECT_THROW(Terminology::load(folder.write("bad.tsv", bad)), Error) << bad;
  }
}

TEST(Terminology, AHundredThousandTermsAreFoundByTheirFirstWords) {
  std::vector<Term> many;
  for (int i = 0; i < 100'000; ++i)
    many.push_back({concat("the word", i), concat("w", i)});
  const Terminology terms(std::move(many));
  EXPECT_EQ(terms.size(), 100'000u);
  EXPECT_EQ(found(terms, "of the word77 and The Word99999"), "the word77=w77 The Word99999=w99999");
}

}  // namespace
}  // namespace seqconv::internal
