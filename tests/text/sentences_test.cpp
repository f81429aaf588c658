#include "text/sentences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <sstream>
#include <string>

#include "base/utf8.h"

namespace seqconv::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string join(const std::vector<std::string_view>& sentences, const char* mark) {
  std::string text;
  for (const std::string_view sentence : sentences)
    text += (text.empty() ? "" : mark) + std::string(sentence);
  return text;
}

// Lines such as "÷ 0061 × 002E ÷ 0020 ÷ # ...".
TEST(SplitSentences, AgreesWithUnicodesOwnCases) {
  std::ifstream file(SEQCONV_UNICODE_DATA "/auxiliary/SentenceBreakTest.txt");
  int cases = 0;
  for (std::string line; std::getline(file, line);) {
    line.resize(std::min(line.find('#'), line.size()));
    std::istringstream words(line);
    std::string text, wanted;
    for (std::string word; words >> word;) {
      if (word == "÷")
        wanted += wanted.empty() ? "" : "|";
      else if (word != "×") {
        std::string bytes;
        append_utf8(static_cast<char32_t>(std::stoul(word, nullptr, 16)), bytes);
        text += bytes;
        wanted += bytes;
      }
    }
    if (text.empty())
      continue;
    if (wanted.ends_with('|'))
      wanted.pop_back();
    EXPECT_EQ(join(split_sentences(text), "|"), wanted) << line;
    ++cases;
  }
  EXPECT_GT(cases, 400);
}

TEST(SplitSentences, KeepsWhiteSpaceWithTheSentenceBefore) {
  EXPECT_THAT(
      split_sentences("One. Two!  \"Three.\" he said.\n\nFour"),
      ElementsAre("One. ", "Two!  ", "\"Three.\" he said.\n", "\n", "Four"));
  EXPECT_THAT(split_sentences(""), IsEmpty());
  EXPECT_THAT(split_sentences("  "), ElementsAre("  "));
  EXPECT_THAT(split_sentences("今日は。明日は？はい"), ElementsAre("今日は。", "明日は？", "はい"));
  EXPECT_THAT(split_sentences("3.5 Mr.X www.a.de v1.2."), ElementsAre("3.5 Mr.X www.a.de v1.2."));
}

TEST(SplitSentences, KnowsAbbreviationsOfALanguage) {
  const std::string english = "Mr. Smith met Dr. Who. He left.";
  EXPECT_THAT(split_sentences(english, "en"), ElementsAre("Mr. Smith met Dr. Who. ", "He left."));
  EXPECT_THAT(
      split_sentences(english, "en-GB"), ElementsAre("Mr. Smith met Dr. Who. ", "He left."));
  EXPECT_THAT(split_sentences(english), ElementsAre("Mr. ", "Smith met Dr. ", "Who. ", "He left."));
  // Two full stops in one, of which the first alone would be an end.
  EXPECT_THAT(
      split_sentences("Es gab z.B. Äpfel. Z. B. Birnen.", "de"),
      ElementsAre("Es gab z.B. Äpfel. ", "Z. B. Birnen."));
  // An abbreviation is a word of its own, and nothing closes it.
  EXPECT_THAT(split_sentences("XMr. Smith.", "en"), ElementsAre("XMr. ", "Smith."));
  EXPECT_THAT(split_sentences("(Mr.) Smith.", "en"), ElementsAre("(Mr.) ", "Smith."));
  EXPECT_THAT(split_sentences("Mr.\nSmith.", "en"), ElementsAre("Mr.\n", "Smith."));
}

TEST(SplitSentences, KnowsOrdinals) {
  const std::string german = "Am 3. Oktober war es 20. Er kam 1990. Sie 3.";
  EXPECT_THAT(
      split_sentences(german, "de"),
      ElementsAre("Am 3. Oktober war es 20. Er kam 1990. ", "Sie 3."));
  EXPECT_THAT(
      split_sentences("At 3. He came 1.5. She", "en"),
      ElementsAre("At 3. ", "He came 1.5. ", "She"));
  EXPECT_THAT(split_sentences("1.5. Das A3. Das", "de"), ElementsAre("1.5. ", "Das A3. ", "Das"));
}

TEST(SplitSentences, CoversAnyBytes) {
  std::mt19937 random(1);
  const std::vector<std::string> parts = {
      ".",
      "!",
      " ",
      "\n",
      "\r",
      "a",
      "B",
      "Dr",
      "中",
      "1",
      ")",
      "\"",
      ",",
      "\xCC\x81",
      "\xFF",
      "\xE2\x80",
      "\xC2\xAD",
      "\xE2\x80\xA9"};
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (size_t i = random() % 20; i > 0; --i)
      text += parts[random() % parts.size()];
    const auto sentences = split_sentences(text, "de");
    EXPECT_EQ(join(sentences, ""), text);
    for (const std::string_view sentence : sentences)
      EXPECT_FALSE(sentence.empty());
  }
}

TEST(SplitLong, EndsPartsBehindWhiteSpaceOrCharacters) {
  const auto parts = [](std::string_view sentence, size_t most) {
    const auto split = split_long(sentence, most);
    return std::vector<std::string>(split.begin(), split.end());
  };
  using Parts = std::vector<std::string>;
  EXPECT_EQ(parts("one two three", 100), Parts({"one two three"}));
  EXPECT_EQ(parts("one two three", 13), Parts({"one two three"}));
  EXPECT_EQ(parts("one two three", 12), Parts({"one two ", "three"}));
  EXPECT_EQ(parts("one  two", 3), Parts({"one  ", "two"}));
  EXPECT_EQ(parts("onetwo", 3), Parts({"one", "two"}));
  EXPECT_EQ(parts("大きい犬", 2), Parts({"大き", "い犬"}));
  EXPECT_EQ(parts("ae\u0301i", 2), Parts({"ae\u0301", "i"}));
  EXPECT_EQ(parts("", 3), Parts());
  EXPECT_EQ(parts(" \n ", 1), Parts({" \n "}));
}

TEST(SplitLong, TakesLinearTime) {
  const std::string words(2'000'000, 'a'), blanks(2'000'000, ' ');
  EXPECT_EQ(split_long(words, 100).size(), 20'000u);
  EXPECT_EQ(split_long(blanks, 100).size(), 1u);
}

TEST(SplitSentences, TakesLinearTime) {
  for (const std::string part : {". ", ".", "(", ".1", "Z. B", ". ★", ".) ", "\r"}) {
    std::string text = ".";
    while (text.size() < 1'000'000)
      text += part;
    EXPECT_EQ(join(split_sentences(text, "de"), ""), text);
  }
}

}  // namespace
}  // namespace seqconv::internal
