#include "metrics/rouge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <random>

#include "base/error.h"
#include "score_data.h"
#include "support/errors.h"
#include "support/rounds.h"
#include "support/temporary_folder.h"

namespace seqconv::internal {
namespace {

using testing::error_of;
using testing::rounds;
using testing::TemporaryFolder;
using Lines = std::vector<std::string>;

constexpr size_t kRouge1 = 0;
constexpr size_t kRouge2 = 1;
constexpr size_t kRougeL = 2;
constexpr size_t kRougeLsum = 3;

RougeOptions in_style(RougeStyle style) {
  RougeOptions options;
  options.style = style;
  return options;
}

RougeValues rouge(
    size_t measure,
    const std::string& summary,
    const Lines& references,
    const RougeOptions& options = {}) {
  return Rouge(options).compare(summary, references).at(measure);
}

bool are_equal(const std::string& a, const std::string& b, const RougeOptions& options = {}) {
  return rouge(kRouge1, a, {b}, options).f == 100;
}

void expect_values(const RougeValues& values, double recall, double precision, double f) {
  EXPECT_NEAR(values.recall, recall, 1e-9);
  EXPECT_NEAR(values.precision, precision, 1e-9);
  EXPECT_NEAR(values.f, f, 1e-9);
}

TEST(Rouge, FollowsTheDefinition) {
  // 5 of 6 and of 8 words, 3 of 5 and of 7 pairs of neighbours, clipped.
  const std::string reference = "the cat sat on the mat";
  const std::string summary = "the cat was on the mat the mat";
  const auto style = in_style(RougeStyle::kRougeScore);
  const auto f = [](double r, double p) { return 200 * r * p / (r + p); };
  expect_values(
      rouge(kRouge1, summary, {reference}, style), 500.0 / 6, 500.0 / 8, f(5.0 / 6, 5.0 / 8));
  expect_values(
      rouge(kRouge2, summary, {reference}, style), 300.0 / 5, 300.0 / 7, f(3.0 / 5, 3.0 / 7));
  expect_values(
      rouge(kRougeL, summary, {reference}, style), 500.0 / 6, 500.0 / 8, f(5.0 / 6, 5.0 / 8));
  // Rounded to five decimals of 1, F after the others.
  expect_values(rouge(kRouge1, summary, {reference}), 83.333, 62.5, 71.428);
}

TEST(Rouge, OfTextWithoutWordsIsZero) {
  for (RougeStyle style : {RougeStyle::kRouge155, RougeStyle::kRougeScore})
    for (const Lines& pair : {Lines{"", ""}, {"", "a"}, {"a", ""}, {"\n", "- - é"}, {"a", "\n\n"}})
      for (const RougeValues& values : Rouge(in_style(style)).compare(pair[0], {pair[1]}))
        expect_values(values, 0, 0, 0);
}

TEST(Rouge, WordsAreRunsOfAsciiLettersAndDigits) {
  EXPECT_TRUE(are_equal("Well-known, U.S. don't", "well known u s don t"));
  EXPECT_TRUE(are_equal("caf\xC3\xA9 na\xC3\xAFve", "CAF na ve"));
  EXPECT_TRUE(are_equal(std::string("a\0b \xFF$5_c", 9), "a b 5 c"));
}

TEST(Rouge, WordsMayBeThoseOfAllScripts) {
  RougeOptions options;
  options.tokenizer = RougeWords::kUnicode;
  // Chinese words are characters, Thai ones characters with their marks.
  expect_values(rouge(kRouge1, "今天很好", {"昨天很好!"}, options), 75, 75, 75);
  expect_values(rouge(kRouge2, "今天很好", {"昨天很好!"}, options), 66.667, 66.667, 66.667);
  EXPECT_TRUE(are_equal("Собака БЕЖИТ", "собака, бежит.", options));
  EXPECT_FALSE(are_equal("ดี", "ดู", options));
  EXPECT_TRUE(are_equal("running ÉTÉ", "runs été", options));
  expect_values(
      rouge(kRougeL, "собака бежит\nкошка", {"кошка\nсобака бежит"}, options), 100, 100, 100);
  EXPECT_EQ(rouge(kRouge1, "今天很好", {"今天很好"}).f, 0);
}

// As ROUGE-1.5.5.pl has it; tools/compare_rouge.py compares with the program.
TEST(Rouge, LooksNoFurtherThanTheLimits) {
  RougeOptions options;
  options.max_words = 3;
  expect_values(rouge(kRouge1, "a b c d e", {"a b x c"}, options), 66.667, 66.667, 66.667);
  expect_values(rouge(kRouge1, "a b\nc d", {"a b c"}, options), 100, 100, 100);
  options = {};
  options.max_bytes = 5;
  expect_values(rouge(kRouge1, "a b cd e", {"a b cx"}, options), 100, 100, 100);
  // Line feeds between sentences are no bytes.
  expect_values(rouge(kRouge1, "ab\ncd\nef", {"ab cd e"}, options), 100, 66.667, 80);
}

TEST(Rouge, OfThePackageKnowsTheCapitalsWhoseSmallLetterIsAscii) {
  const auto package = in_style(RougeStyle::kRougeScore);
  const std::string text = "\xC4\xB0stanbul 3\xE2\x84\xAA";
  EXPECT_TRUE(are_equal(text, "i stanbul 3k", package));
  EXPECT_TRUE(are_equal(text, "stanbul 3"));
}

TEST(Rouge, StemsWordsOfMoreThanThreeLetters) {
  EXPECT_TRUE(are_equal("hopping relational", "hop relate"));
  EXPECT_FALSE(are_equal("sis", "si"));
  RougeOptions words;
  words.stem = false;
  EXPECT_FALSE(are_equal("hopping", "hop", words));
}

TEST(Rouge, StemsAsEitherProgram) {
  const auto package = in_style(RougeStyle::kRougeScore);
  // A word loses "al" and then "ion" in the program alone.
  EXPECT_TRUE(are_equal("conventionalism", "convention"));
  EXPECT_FALSE(are_equal("conventionalism", "convention", package));
  EXPECT_TRUE(are_equal("anthement", "anthem"));
  EXPECT_FALSE(are_equal("anthement", "anthem", package));
  // Only NLTK has a list of words, and rules for words of four letters.
  EXPECT_TRUE(are_equal("dying ties", "die tie", package));
  EXPECT_FALSE(are_equal("dying", "die"));
  EXPECT_FALSE(are_equal("ties", "tie"));
}

TEST(Rouge, LooksIrregularFormsUp) {
  const TemporaryFolder folder;
  for (const char* kind : {"adj", "adv", "noun", "verb"})
    std::ofstream(folder.path() / (std::string(kind) + ".exc"));
  std::ofstream(folder.path() / "adj.exc") << "better good well\n";
  std::ofstream(folder.path() / "verb.exc") << "went go\n\nmen man\nwas be\n";
  RougeOptions options;
  options.exceptions = folder.path();
  EXPECT_FALSE(are_equal("Went", "go"));
  EXPECT_TRUE(are_equal("Went better", "go good", options));
  // Short words keep their form.
  EXPECT_FALSE(are_equal("men", "man", options));
  EXPECT_TRUE(Rouge(options).signature().find("|exceptions:4-") != std::string::npos);
  std::ofstream(folder.path() / "adv.exc") << "better well\nworse\n";
  EXPECT_EQ(
      error_of([&] { Rouge rouge(options); }),
      (folder.path() / "adv.exc").string() +
          ":2: an irregular form and its base form were wanted, but got 'worse'");
  std::ofstream(folder.path() / "adv.exc") << "better well\n";
  EXPECT_TRUE(are_equal("better", "well", options));
  std::filesystem::remove(folder.path() / "noun.exc");
  EXPECT_NE(error_of([&] { Rouge rouge(options); }).find("noun.exc"), std::string::npos);
}

TEST(Rouge, CountsTheUnionOverSentences) {
  // "a b" and "d e" of the one sentence are found in two of the summary's.
  const std::string summary = "a b x\nd e";
  const std::string reference = "a b c d e";
  expect_values(rouge(kRougeL, summary, {reference}), 80, 80, 80);
  const auto package = in_style(RougeStyle::kRougeScore);
  expect_values(rouge(kRougeLsum, summary, {reference}, package), 80, 80, 80);
  // Backwards, the package's ROUGE-L of whole texts finds but one part.
  expect_values(rouge(kRougeL, "d e\na b x", {reference}, package), 40, 40, 40);
  // No word counts more often than the summary has it.
  expect_values(rouge(kRougeL, "a", {"a b\na c"}), 25, 100, 40);
}

TEST(Rouge, AddsUpReferencesOrTakesOne) {
  const std::string summary = "a b c";
  const Lines references = {"a b c d", "a b", "x"};
  RougeOptions options;
  expect_values(rouge(kRouge1, summary, references), 71.429, 55.556, 62.5);
  options.references = RougeReferences::kBest;  // by recall, not by F
  expect_values(rouge(kRouge1, summary, references, options), 100, 66.667, 80);
  options.references = RougeReferences::kJackknife;
  // Best of {2, 3}, of {1, 3} and of {1, 2}.
  expect_values(
      rouge(kRouge1, summary, references, options),
      (100 + 75 + 100) / 3.0,
      (66.667 + 100 + 66.667) / 3,
      (80 + 85.714 + 80) / 3);
  expect_values(rouge(kRouge1, summary, {"a b"}, options), 100, 66.667, 80);
  const auto package = in_style(RougeStyle::kRougeScore);
  expect_values(rouge(kRouge1, summary, references, package), 75, 100, 600.0 / 7);
}

TEST(Rouge, OfTwoRecallsEqualInFiveDecimalsTheFirstIsBest) {
  std::string summary;
  std::string first;
  std::string second;
  for (int i = 0; i < 401; ++i) {
    const std::string word = concat("a", i, " ");
    summary += i < 200 ? word : "";
    first += i < 199 ? word : i < 399 ? "b " : "";
    second += i < 200 ? word : "c ";
  }
  RougeOptions options;
  options.references = RougeReferences::kBest;
  // 199 of 399 and 200 of 401 are both 0.49875.
  EXPECT_EQ(rouge(kRouge1, summary, {first, second}, options).precision, 99.5);
  EXPECT_EQ(rouge(kRouge1, summary, {second, first}, options).precision, 100);
}

TEST(Rouge, WeighsPrecisionByAlpha) {
  RougeOptions options;
  for (const auto& [alpha, f] :
       {std::pair(0.0, 50.0), std::pair(1.0, 100.0), std::pair(0.2, 55.556)}) {
    options.alpha = alpha;
    expect_values(rouge(kRouge1, "a", {"a b"}, options), 50, 100, f);
  }
}

/// Which tokens the longest common subsequence takes, by the whole table.
std::vector<bool> slow_marks(const Lines& reference, const Lines& summary) {
  std::vector<std::vector<int>> table(reference.size() + 1, std::vector<int>(summary.size() + 1));
  for (size_t i = 1; i <= reference.size(); ++i)
    for (size_t j = 1; j <= summary.size(); ++j)
      table[i][j] = reference[i - 1] == summary[j - 1] ? table[i - 1][j - 1] + 1
                                                       : std::max(table[i - 1][j], table[i][j - 1]);
  std::vector<bool> marks(reference.size());
  size_t i = reference.size();
  size_t j = summary.size();
  while (i > 0 && j > 0) {
    if (reference[i - 1] == summary[j - 1])
      marks[i - 1] = true, --i, --j;
    else if (table[i][j - 1] > table[i - 1][j])
      --j;
    else
      --i;
  }
  return marks;
}

std::string join_words(const Lines& words) {
  std::string text;
  for (const std::string& word : words)
    text += word + " ";
  return text;
}

TEST(Rouge, OfLongSentencesTakesTheSubsequenceOfTheWholeTable) {
  std::mt19937 random(39);
  const auto sentence = [&](unsigned most, unsigned letters) {
    Lines words(random() % (most + 1));
    for (std::string& word : words)
      word = static_cast<char>('a' + random() % letters);
    return words;
  };
  for (int round = 0; round < rounds(200); ++round) {
    const unsigned letters = 2 + random() % 12;
    const Lines reference = sentence(200, letters);
    const std::vector<Lines> summary = {sentence(300, letters), sentence(100, letters)};
    std::map<std::string, int> left;
    for (const Lines& words : summary)
      for (const std::string& word : words)
        ++left[word];
    const auto first = slow_marks(reference, summary[0]);
    const auto second = slow_marks(reference, summary[1]);
    int matched = 0;
    for (size_t i = 0; i < reference.size(); ++i)
      if ((first[i] || second[i]) && left[reference[i]]-- > 0)
        ++matched;
    const auto package = in_style(RougeStyle::kRougeScore);
    const std::string text = join_words(summary[0]) + "\n" + join_words(summary[1]);
    EXPECT_NEAR(
        rouge(kRougeLsum, text, {join_words(reference)}, package).recall *
            static_cast<double>(reference.size()),
        100 * matched,
        1e-6);
  }
}

TEST(Rouge, OfVeryLongSentencesNeedsNoWholeTable) {
  // 50,000 words on both sides: the table would have 2.5e9 cells. Of the
  // reference's words every third comes again, in order, among others.
  Lines reference;
  Lines summary;
  for (int i = 0; i < 50000; ++i) {
    reference.push_back(concat("r", i));
    summary.push_back(i % 3 == 0 ? reference.back() : concat("s", i));
  }
  const auto values = Rouge(in_style(RougeStyle::kRougeScore))
                          .compare(join_words(summary), {join_words(reference)});
  const double share = 100 * 16667.0 / 50000;
  EXPECT_NEAR(values[kRougeL].recall, share, 1e-9);
  EXPECT_NEAR(values[kRougeLsum].recall, share, 1e-9);
}

TEST(Rouge, TakesAnyBytes) {
  std::mt19937 random(19);
  for (int round = 0; round < 100; ++round) {
    std::string a;
    std::string b;
    for (int i = 0; i < 60; ++i) {
      a += static_cast<char>(random());
      b += static_cast<char>(random());
    }
    for (RougeStyle style : {RougeStyle::kRouge155, RougeStyle::kRougeScore})
      for (const RougeValues& values : Rouge(in_style(style)).compare(a, {a + "x", b, ""}))
        EXPECT_LE(values.f, 100);
  }
}

TEST(Rouge, OfACorpusIsTheMeanOfItsPairs) {
  const Rouge metric = corpus_rouge({"a b", "a", "x"}, {{"a b", "a b", "y"}});
  EXPECT_EQ(metric.names(), (Lines{"ROUGE-1", "ROUGE-2", "ROUGE-L"}));
  expect_values(metric.score()[kRouge1], 150.0 / 3, 200.0 / 3, (100 + 66.667) / 3);
  EXPECT_EQ(
      metric.report(),
      "ROUGE-1/ROUGE-2/"
      "ROUGE-L|nrefs:1|style:rouge-1.5.5|stem:porter|exceptions:none|refs:average|alpha:0.5|"
      "version:seqconv-0.1.0 = F 55.56/33.33/55.56 R 50.00/33.33/50.00 P 66.67/33.33/66.67");
  RougeStatistics both = metric.statistics();
  both += metric.statistics();
  EXPECT_EQ(both.pairs, 6);
  expect_values(both.means()[kRouge1], 150.0 / 3, 200.0 / 3, (100 + 66.667) / 3);
  expect_values(Rouge().score()[kRougeL], 0, 0, 0);
  RougeOptions package = in_style(RougeStyle::kRougeScore);
  package.stem = false;
  EXPECT_EQ(Rouge(package).signature(), "nrefs:0|style:rouge_score|stem:no|version:seqconv-0.1.0");
  EXPECT_EQ(Rouge(package).names().back(), "ROUGE-Lsum");
}

TEST(Rouge, ErrorsSayWhatWasWanted) {
  const auto error = [](auto change) {
    RougeOptions options;
    change(options);
    return error_of<UsageError>([&] { Rouge metric(options); });
  };
  EXPECT_EQ(
      error([](RougeOptions& options) { options.order = 0; }),
      "rouge.order must be from 1 to 9, but got 0");
  EXPECT_EQ(
      error([](RougeOptions& options) { options.alpha = 1.5; }),
      "rouge.alpha must be from 0 to 1, but got 1.5");
  EXPECT_EQ(
      error([](RougeOptions& options) {
        options.style = RougeStyle::kRougeScore;
        options.references = RougeReferences::kBest;
      }),
      "rouge.combine has no effect with rouge.style = 'rouge_score'");
  EXPECT_EQ(
      error([](RougeOptions& options) {
        options.style = RougeStyle::kRougeScore;
        options.alpha = 0.2;
      }),
      "rouge.alpha has no effect with rouge.style = 'rouge_score'");
  EXPECT_EQ(
      error([](RougeOptions& options) {
        options.stem = false;
        options.exceptions = "x";
      }),
      "rouge.exceptions has no effect with rouge.stem = false");
  EXPECT_EQ(
      error([](RougeOptions& options) {
        options.max_words = 2;
        options.max_bytes = 3;
      }),
      "rouge.max_words and rouge.max_bytes cannot both be above 0, but got 2 and 3");
  EXPECT_EQ(
      error([](RougeOptions& options) {
        options.style = RougeStyle::kRougeScore;
        options.max_bytes = 3;
      }),
      "rouge.max_bytes has no effect with rouge.style = 'rouge_score'");
  EXPECT_EQ(
      error_of([] { Rouge().add("a", {}); }), "a score needs at least one reference, but got 0");
  EXPECT_EQ(
      error_of([] {
        corpus_rouge({"a", "b"}, {{"a"}});
      }),
      "hypotheses and references must have the same number of lines, but got 2 hypotheses and 1 "
      "lines in reference 1");
}

}  // namespace
}  // namespace seqconv::internal
