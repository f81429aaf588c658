#include "metrics/tokenizers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "metrics/bleu.h"
#include "support/errors.h"

namespace seqconv::internal {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using Lines = std::vector<std::string>;

TEST(BleuTokenizers, FollowZh) {
  const auto tokens = [](std::string_view line) { return tokenize(line, BleuTokenizer::kZh); };
  EXPECT_THAT(
      tokens(" 漢字，abc，3.5米。"), ElementsAre("漢", "字", "，", "abc", "，", "3.5", "米", "。"));
  // Signs like these are Chinese to sacreBLEU, ideographs from U+20000 on not.
  EXPECT_THAT(tokens("a→b—c"), ElementsAre("a", "→", "b", "—", "c"));
  EXPECT_THAT(tokens("𠀀𠀁"), ElementsAre("𠀀𠀁"));
  // Unlike 13a, which looks at a line between blanks, and reads entities.
  EXPECT_THAT(tokens(".5 5."), ElementsAre(".5", "5."));
  EXPECT_THAT(tokens("&amp;"), ElementsAre("&", "amp", ";"));
}

TEST(BleuTokenizers, MayStandAboveTheLayer) {
  const LineTokenizer halves{
      [](std::string_view line) {
        const size_t half = line.size() / 2;
        return Lines{std::string(line.substr(0, half)), std::string(line.substr(half))};
      },
      "halves"};
  Bleu bleu({.tokenizer = BleuTokenizer::kSpm}, halves);
  // The first token holds a blank, which splits it.
  bleu.add("a b cdefg ", {"a b cdefg"});
  EXPECT_EQ(bleu.statistics().hypothesis_length, 3);
  EXPECT_EQ(
      bleu.signature(), "nrefs:1|case:mixed|eff:no|tok:halves|smooth:exp|version:seqconv-0.1.0");
}

TEST(BleuTokenizers, SayWhatTheyLack) {
  EXPECT_EQ(
      error_of<UsageError>([] { Bleu({.tokenizer = BleuTokenizer::kSpm}); }),
      "bleu.tokenizer = 'spm' needs a SentencePiece model");
  EXPECT_EQ(
      error_of<UsageError>([] { Bleu({.tokenizer = BleuTokenizer::kJaMecab}); }),
      "bleu.tokenizer = 'ja-mecab' needs a dictionary of MeCab");
  EXPECT_EQ(
      error_of([] { tokenize("a", BleuTokenizer::kSpm); }),
      "the tokenizer 'spm' needs a model, but got none");
}

TEST(UnsegmentedLanguage, IsNamed) {
  EXPECT_EQ(unsegmented_language({"他们在会议上讨论了这个问题。", "昨天天气很好"}), "Chinese");
  EXPECT_EQ(unsegmented_language({"昨日の会議でこの問題について話しました。"}), "Japanese");
  EXPECT_EQ(unsegmented_language({"เมื่อวานอากาศดีมาก เราเดินไปที่ตลาด"}), "Thai");
  EXPECT_EQ(unsegmented_language({"ខ្ញុំទៅផ្សារជាមួយម្តាយរបស់ខ្ញុំ"}), "Khmer");
  EXPECT_EQ(unsegmented_language({"ຂ້ອຍໄປຕະຫຼາດກັບແມ່ຂອງຂ້ອຍ"}), "Lao");
  EXPECT_EQ(unsegmented_language({"ကျွန်တော်ဈေးကိုသွားတယ်"}), "Burmese");
  // Short lines, of one stretch each.
  EXPECT_EQ(unsegmented_language({"你好", "谢谢", "早上好"}), "Chinese");
  EXPECT_EQ(unsegmented_language({"コーヒー", "ありがとう"}), "Japanese");
}

TEST(UnsegmentedLanguage, IsNoneWhereBlanksSeparateWords) {
  EXPECT_EQ(unsegmented_language({}), "");
  EXPECT_EQ(unsegmented_language({"", "1 2 3 。"}), "");
  EXPECT_EQ(unsegmented_language({"Ein Hund läuft", "собака бежит"}), "");
  EXPECT_EQ(unsegmented_language({"어제 회의에서 이 문제를 논의했습니다"}), "");
  EXPECT_EQ(unsegmented_language({"他们 在 会议 上 讨论 了 这个 问题 。"}), "");
  EXPECT_EQ(unsegmented_language({"昨日 の 会議 で この 問題 に つい て 話し まし た"}), "");
  EXPECT_EQ(unsegmented_language({"เมื่อวาน อากาศ ดี มาก เรา เดิน ไป ที่ ตลาด"}), "");
  // A name in an English text.
  EXPECT_EQ(unsegmented_language({"The word 这个问题很难回答 was in the text"}), "");
}

TEST(UnsegmentedLanguage, MattersWhereBleuSplitsAtBlanks) {
  const std::vector<std::string> lines = {"昨天天气很好我们去公园"};
  const auto language = [&](BleuTokenizer tokenizer) {
    return language_without_words(lines, {.tokenizer = tokenizer});
  };
  EXPECT_EQ(language(BleuTokenizer::k13a), "Chinese");
  EXPECT_EQ(language(BleuTokenizer::kIntl), "Chinese");
  EXPECT_EQ(language(BleuTokenizer::kNone), "Chinese");
  EXPECT_EQ(language_without_words(lines, {.style = BleuStyle::kMultiBleu}), "Chinese");
  // Kana are not split.
  EXPECT_EQ(
      language_without_words(
          {"昨日の会議でこの問題について話しました。"}, {.tokenizer = BleuTokenizer::kZh}),
      "Japanese");
  for (const auto tokenizer :
       {BleuTokenizer::kChar, BleuTokenizer::kZh, BleuTokenizer::kSpm, BleuTokenizer::kJaMecab})
    EXPECT_EQ(language(tokenizer), "");
}

}  // namespace
}  // namespace seqconv::internal
