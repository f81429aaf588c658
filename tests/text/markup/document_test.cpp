#include "text/markup/document.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/errors.h"
#include "text/markup/aligned_words.h"

namespace seqconv::internal {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::IsEmpty;

/// Each word in brackets, one token a word, aligned with its own; the second translation has
/// braces.
std::vector<TranslationResult> bracketed(const Document& document) {
  std::vector<TranslationResult> results;
  for (const std::string_view sentence : document.sentences()) {
    TranslationResult result;
    result.translations.resize(2);
    for (size_t begin = 0, token = 0; begin < sentence.size(); ++token) {
      const size_t end = std::min(sentence.find(' ', begin), sentence.size());
      result.source_ranges.push_back({static_cast<int64_t>(begin), static_cast<int64_t>(end)});
      for (size_t i = 0; i < 2; ++i) {
        Translation& own = result.translations[i];
        own.text += begin == 0 ? "" : " ";
        const auto start = static_cast<int64_t>(own.text.size());
        own.text +=
            std::string(1, "[{"[i]) + std::string(sentence.substr(begin, end - begin)) + "]}"[i];
        own.token_ranges.push_back({start, static_cast<int64_t>(own.text.size())});
        own.alignment.push_back({static_cast<int64_t>(token), static_cast<int64_t>(token)});
      }
      begin = end + 1;
    }
    results.push_back(std::move(result));
  }
  return results;
}

std::string translated(std::string text, DocumentFormat format, size_t number = 0) {
  const Document document(std::move(text), format, "en");
  return document.with(bracketed(document), number);
}

TEST(Document, KeepsWhatIsBetweenSentences) {
  const Document document("Mr. A sees. B!\n\n  - C\n12\n😀 \n", DocumentFormat::kText, "en");
  EXPECT_THAT(document.sentences(), ElementsAre("Mr. A sees.", "B!", "- C"));
  EXPECT_FALSE(document.wants_alignments());
  EXPECT_EQ(document.with(bracketed(document)), "[Mr.] [A] [sees.] [B!]\n\n  [-] [C]\n12\n😀 \n");
  EXPECT_EQ(document.with(bracketed(document), 1), "{Mr.} {A} {sees.} {B!}\n\n  {-} {C}\n12\n😀 \n");
  EXPECT_EQ(document.with(bracketed(document), 9), document.with(bracketed(document), 1));
  for (const char* text : {"", " \n ", "12 345", "\xF0\x9F\x98\x80"})
    EXPECT_EQ(translated(text, DocumentFormat::kText), text);
}

TEST(Document, TellsWhichWordsBelongTogether) {
  const Document document("A sees.\n\nÉ b", DocumentFormat::kText, "en");
  const std::vector<TranslationResult> results = bracketed(document);
  const std::string translation = document.with(results);  // [A] [sees.]\n\n[É] [b]
  std::vector<std::string> words;
  for (const auto& [source, target] : document.aligned(results))
    words.push_back(
        std::string("A sees.\n\nÉ b").substr(source.begin, source.end - source.begin) + " " +
        translation.substr(target.begin, target.end - target.begin));
  EXPECT_THAT(
      words,
      ElementsAre(
          "A [",
          "A A",
          "A ]",
          "sees [",
          ". [",
          "sees sees",
          ". sees",
          "sees .",
          ". .",
          "sees ]",
          ". ]",
          "É [",
          "É É",
          "É ]",
          "b [",
          "b b",
          "b ]"));
  const Document html("<p>A <b>b</b>", DocumentFormat::kHtml, "en");
  EXPECT_THAT(html.aligned(bracketed(html)), IsEmpty());
}

TEST(AlignedWords, JoinsTheirTokens) {
  const RunTranslation translation{
      "unter 犬犬", {{{0, 3}, {0, 2}}, {{3, 6}, {2, 5}}, {{3, 6}, {0, 2}}, {{6, 7}, {6, 9}}}};
  std::vector<std::vector<int64_t>> words;
  for (const auto& [source, target] : aligned_words("below x", translation))
    words.push_back({source.begin, source.end, target.begin, target.end});
  EXPECT_THAT(words, ElementsAre(ElementsAre(0, 5, 0, 5), ElementsAre(6, 7, 6, 9)));
}

TEST(Document, PutsBlanksWhereTheLanguageHasThem) {
  const auto with = [](std::string source, std::vector<std::string> translations) {
    const Document document(std::move(source), DocumentFormat::kText, "");
    std::vector<TranslationResult> results;
    for (std::string& text : translations)
      results.emplace_back().translations.push_back({std::move(text), {}});
    return document.with(results);
  };
  EXPECT_EQ(with("一。二。", {"One.", "Two."}), "One. Two.");
  EXPECT_EQ(with("One. Two.", {"一。", "二。"}), "一。二。");
  EXPECT_EQ(with("One.\nTwo.", {"一。", "二。"}), "一。\n二。");
  EXPECT_EQ(with("One.  Two.", {"A.", "B."}), "A.  B.");
}

TEST(Document, PutsTagsOfHtmlAroundTheirWords) {
  EXPECT_EQ(
      translated("<p>The <b>dog</b> runs. It <i>barks</i>.</p>\n<p>12</p>", DocumentFormat::kHtml),
      "<p>[The] <b>[dog]</b> [runs.] [It] <i>[barks.]</i></p>\n<p>12</p>");
  EXPECT_EQ(translated("a &lt; b", DocumentFormat::kHtml), "[a] [&lt;] [b]");
  EXPECT_EQ(
      translated("<b>A b. C d.</b> E", DocumentFormat::kHtml), "<b>[A] [b.] [C] [d.]</b> [E]");
}

TEST(Document, TellsWhatIsWrong) {
  const Document document("A. B.", DocumentFormat::kText, "en");
  EXPECT_EQ(error_of([&] { document.with({}); }), "[document] there must be 1 results, but got 0");
  TranslationResult failed;
  failed.status = Status::kTimedOut;
  failed.error = "too late";
  EXPECT_EQ(error_of([&] { document.with({failed}); }), "too late");
  EXPECT_EQ(
      error_of([&] { document.with({TranslationResult()}); }),
      "[document] a result must have a translation, but got none");
}

}  // namespace
}  // namespace seqconv::internal
