#include "text/bpe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "base/log.h"
#include "base/utf8.h"
#include "support/errors.h"
#include "support/temporary_folder.h"
#include "text/bpe_trainer.h"

#ifdef __SANITIZE_ADDRESS__
extern "C" size_t __sanitizer_get_current_allocated_bytes();
#endif

namespace seqconv::internal {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

/// Bytes of the heap that are not free.
double heap_in_use() {
#ifdef __SANITIZE_ADDRESS__
  return static_cast<double>(::__sanitizer_get_current_allocated_bytes());
#else
  const struct mallinfo2 all = ::mallinfo2();
  return static_cast<double>(all.uordblks + all.hblkhd);
#endif
}

using Symbols = std::vector<std::string>;

Symbols parse_lines(const std::string& text) {
  Symbols lines;
  size_t start = 0;
  for (size_t end; (end = text.find('\n', start)) != std::string::npos; start = end + 1)
    lines.push_back(text.substr(start, end - start));
  return lines;
}

/// The plain definition: again and again the pair of the best rank, wherever it
/// is, from left to right.
Symbols apply_plainly(
    const std::map<std::pair<std::string, std::string>, int>& ranks, const std::string& word) {
  Symbols symbols;
  for (std::string_view c : split_characters(word))
    symbols.emplace_back(c);
  if (symbols.size() == 1)
    return symbols;
  symbols.back() += "</w>";
  for (;;) {
    auto best = ranks.end();
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto found = ranks.find({symbols[i], symbols[i + 1]});
      if (found != ranks.end() && (best == ranks.end() || found->second < best->second))
        best = found;
    }
    if (best == ranks.end())
      break;
    Symbols merged;
    for (size_t i = 0; i < symbols.size(); ++i) {
      merged.push_back(symbols[i]);
      if (i + 1 < symbols.size() && symbols[i] == best->first.first &&
          symbols[i + 1] == best->first.second)
        merged.back() += symbols[++i];
    }
    symbols = merged;
  }
  std::string& last = symbols.back();
  last.erase(last.size() - 4);
  return symbols;
}

TEST(Bpe, MergesByRank) {
  const Bpe bpe = Bpe::parse("#version: 0.2\ne r</w>\nl o\nlo w\n", "codes");
  EXPECT_EQ(bpe.merges(), 3);
  EXPECT_THAT(bpe.segment_word("lower"), ElementsAre("low", "er"));
  EXPECT_THAT(bpe.segment_word("err"), ElementsAre("e", "r", "r"));
  EXPECT_THAT(bpe.segment_word("x"), ElementsAre("x"));
  EXPECT_TRUE(bpe.segment_word("").empty());
}

TEST(Bpe, KeepsBlanksAroundALineAndNotInside) {
  const Bpe bpe = Bpe::parse("#version: 0.2\nl o\n", "codes");
  EXPECT_EQ(bpe.segment_line("  low   xy "), "  lo@@ w x@@ y ");
  EXPECT_EQ(bpe.segment_line("   "), "   ");
  EXPECT_EQ(bpe.segment_line(""), "");
}

TEST(Bpe, LinesEndWherePythonEndsThem) {
  const Bpe bpe = Bpe::parse("#version: 0.2\nl o</w>\n", "codes");
  EXPECT_EQ(bpe.segment_line("lo lo\r\n"), "lo lo\r\n");
  EXPECT_EQ(bpe.segment_line("lo\rlo"), "lo\rlo");
  for (const std::string end : {"\v", "\f", "\x1C", "\x1D", "\x1E", "\xC2\x85", "\u2028", "\u2029"})
    EXPECT_EQ(bpe.segment_line("lo" + end + "lo\n"), "l@@ o@@ " + end + "lo\n");
  EXPECT_EQ(bpe.segment_line("lo\x1Flo\n"), "l@@ o@@ \x1F@@ lo\n");
}

/// The vocabulary that has these pieces.
HasSymbol having(const std::set<std::string>& pieces) {
  return [pieces](const std::string& piece) { return pieces.contains(piece); };
}

TEST(Bpe, PiecesThatTheVocabularyLacksAreTakenApart) {
  const std::string codes = "#version: 0.2\nl o\nlo w</w>\nlo w\ne r</w>\n";
  const auto pieces = [&](const std::set<std::string>& known) {
    return Bpe::parse(codes, "codes", {.vocabulary = having(known)}).segment_line("lower low");
  };
  EXPECT_EQ(pieces({"low@@", "er", "low"}), "low@@ er low");
  EXPECT_EQ(pieces({"lo@@", "er", "low"}), "lo@@ w@@ er low");
  EXPECT_EQ(pieces({"low@@", "er"}), "low@@ er l@@ o@@ w");
  EXPECT_EQ(pieces({"lo@@"}), "lo@@ w@@ e@@ r lo@@ w") << "characters stay, known or not";
}

TEST(Bpe, MergesThatNestDeeplyAreTakenApartToo) {
  std::string codes = "#version: 0.2\n";
  std::string symbol = "a";
  for (int i = 0; i < 2000; ++i, symbol += "a")
    codes += symbol + " a\n";
  const Bpe bpe = Bpe::parse(codes, "codes", {.vocabulary = having({"x"})});
  EXPECT_EQ(bpe.segment_word(std::string(2001, 'a')).size(), 2001u);
}

TEST(Bpe, GlossariesStayWhole) {
  BpeOptions options;
  options.separator = "+";
  options.glossaries = {"<[a-z]+>", "USA"};
  const Bpe bpe = Bpe::parse("#version: 0.2\nl o\n", "codes", options);
  EXPECT_EQ(bpe.segment_line("lo<b>lo <br> USA"), "l+ o+ <b>+ l+ o <br> USA");
  EXPECT_EQ(bpe.segment_line("1USAlo2"), "1+ USA+ lo+ 2");
  EXPECT_EQ(
      error_of<UsageError>([] { Bpe::parse("a b\n", "codes", {.glossaries = {"(a"}}); }),
      "the glossary '(a' is no regular expression: missing closing parenthesis");
}

TEST(Bpe, OnlySoManyMergesCount) {
  const std::string codes = "#version: 0.2\nl o\nlo w</w>\n";
  const auto pieces = [&](int64_t merges) {
    return Bpe::parse(codes, "codes", {.merges = merges}).segment_line("low");
  };
  EXPECT_EQ(pieces(-1), "low");
  EXPECT_EQ(pieces(1), "lo@@ w");
  EXPECT_EQ(pieces(0), "l@@ o@@ w");
}

TEST(Bpe, DropoutPassesMergesOver) {
  const std::string codes = "#version: 0.2\na b\nab c</w>\nab a\n";
  const auto split = [&](double dropout, uint32_t seed, const Symbols& words) {
    BpeOptions options;
    options.dropout = dropout;
    options.seed = seed;
    const Bpe bpe = Bpe::parse(codes, "codes", options);
    std::vector<std::string_view> views(words.begin(), words.end());
    return bpe.segment_words(views);
  };
  EXPECT_THAT(split(0, 1, {"abc", "d"}), ElementsAre("abc", "d"));
  EXPECT_THAT(split(1, 1, {"abc", "d"}), ElementsAre("a@@", "b@@", "c", "d"));
  // Equal words differ, the same seed gives the same again.
  const Symbols many(200, "abc");
  const Symbols pieces = split(0.5, 3, many);
  EXPECT_EQ(pieces, split(0.5, 3, many));
  EXPECT_NE(pieces, split(0.5, 4, many));
  // "abc" whole 1/4 of the times; what is left is not merged with 1/2.
  const auto whole = std::ranges::count(pieces, "abc");
  EXPECT_GT(whole, 25);
  EXPECT_LT(whole, 90);
  EXPECT_GT(std::ranges::count(pieces, "ab@@"), 15);
  EXPECT_EQ(
      error_of<UsageError>([&] { split(1.5, 1, {}); }),
      "BPE dropout must be a probability from 0 to 1, but got 1.5");
}

TEST(Bpe, AVocabularyFileHasThePiecesThatComeOftenEnough) {
  const TemporaryFolder folder;
  const std::string file = folder.write("vocabulary", "a@@ 7\nb 2\n");
  const HasSymbol all = read_bpe_vocabulary(file, 0);
  EXPECT_TRUE(all("a@@") && all("b") && !all("a"));
  EXPECT_FALSE(read_bpe_vocabulary(file, 3)("b"));
  EXPECT_FALSE(read_bpe_vocabulary(file, 8)) << "then there is none";
  const std::string bad = folder.write("bad", "a 1\nb\n");
  EXPECT_EQ(
      error_of([&] { read_bpe_vocabulary(bad, 0); }),
      bad + ":2: 'symbol count' was wanted, but got 'b'");
}

TEST(Bpe, JoiningUndoesSplitting) {
  EXPECT_EQ(join_bpe("lo@@ w x@@ y"), "low xy");
  EXPECT_EQ(join_bpe("lo@@ w x@@"), "low x");
  EXPECT_EQ(join_bpe("a @@b c@d"), "a @@b c@d");
  EXPECT_EQ(join_bpe(""), "");
}

TEST(Bpe, InVersion01TheEndOfAWordIsASymbol) {
  const std::string merges = "l o\nw </w>\nlo w</w>\n";
  const Bpe old = Bpe::parse(merges, "codes");
  EXPECT_THAT(old.segment_word("low"), ElementsAre("low"));
  EXPECT_THAT(old.segment_word("lo"), ElementsAre("lo"));
  const Bpe explicit_old = Bpe::parse("#version: 0.1\n" + merges, "codes");
  EXPECT_THAT(explicit_old.segment_word("low"), ElementsAre("low"));
  const Bpe present = Bpe::parse("#version: 0.2\n" + merges, "codes");
  EXPECT_THAT(present.segment_word("low"), ElementsAre("low"));
  EXPECT_THAT(present.segment_word("lo"), ElementsAre("l", "o"));
}

TEST(Bpe, ReadsFastBpesThirdColumn) {
  const Bpe bpe = Bpe::parse("l o 55\nlo w</w> 7\n", "codes");
  EXPECT_THAT(bpe.segment_word("low"), ElementsAre("low"));
}

TEST(Bpe, TheFirstOfTwoEqualLinesCounts) {
  const Bpe bpe = Bpe::parse("#version: 0.2\na b\nb c\na b\n", "codes");
  EXPECT_THAT(bpe.segment_word("abcx"), ElementsAre("ab", "c", "x"));
}

TEST(Bpe, ErrorsNameFileAndLine) {
  const auto message = [](const std::string& text) {
    return error_of([&] { Bpe::parse(text, "codes"); });
  };
  EXPECT_EQ(
      message("#version: 0.2\na b\nab\n"),
      "codes:3: two symbols separated by a blank were wanted, but got 'ab'");
  EXPECT_EQ(
      message("#version: 0.2\na b c\n"),
      "codes:2: two symbols separated by a blank were wanted, but got 'a b c'");
  EXPECT_EQ(
      message("#version: 0.2\n\na b\n"),
      "codes:2: two symbols separated by a blank were wanted, but got ''");
  EXPECT_EQ(message("a b 3\na b\n"), "codes:2: two symbols and a count were wanted, but got 'a b'");
  EXPECT_EQ(
      message("#version: 0.3\na b\n"),
      "codes:1: BPE codes of version 0.1 or 0.2 were wanted, but got '#version: 0.3'");
  EXPECT_THAT(message("a b\n\xFF b\n"), HasSubstr("codes:2: UTF-8 was wanted"));
  const TemporaryFolder folder;
  const std::string empty = folder.write("empty", "");
  EXPECT_EQ(
      error_of([&] { Bpe::load(empty); }),
      empty + ": BPE codes were wanted, but the file is empty");
}

TEST(Bpe, EqualsThePlainDefinitionOnRandomCodesAndWords) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    Symbols known = {"a", "b", "c", "é", "a</w>", "b</w>", "é</w>"};
    std::map<std::pair<std::string, std::string>, int> ranks;
    std::string codes = "#version: 0.2\n";
    // Ranks in any order, so that a merge may open a pair of better rank.
    Symbols lines;
    for (int i = 0; i < 25; ++i) {
      const std::string left = known[random() % known.size()];
      const std::string right = known[random() % known.size()];
      if (left.ends_with("</w>") || left.size() + right.size() > 16)
        continue;
      known.push_back(left + right);
      lines.push_back(left + " " + right);
    }
    std::shuffle(lines.begin(), lines.end(), random);
    for (const std::string& line : lines) {
      codes += line + "\n";
      const size_t blank = line.find(' ');
      const int rank = static_cast<int>(ranks.size());
      ranks.emplace(std::pair(line.substr(0, blank), line.substr(blank + 1)), rank);
    }
    if (ranks.empty())
      continue;
    const Bpe bpe = Bpe::parse(codes, "codes");
    for (int i = 0; i < 20; ++i) {
      std::string word;
      for (unsigned n = 1 + random() % 14; n > 0; --n)
        word += std::to_array<const char*>({"a", "b", "c", "é"})[random() % 4];
      EXPECT_EQ(bpe.segment_word(word), apply_plainly(ranks, word)) << word << "\n" << codes;
    }
  }
}

TEST(Bpe, SplitsAVeryLongWordInReasonableTime) {
  const Bpe bpe = Bpe::parse("#version: 0.2\na a\naa aa\naaaa aaaa\na b\n", "codes");
  const auto pieces = bpe.segment_word(std::string(100'001, 'a'));
  EXPECT_EQ(pieces.size(), 12'501u);
  EXPECT_EQ(pieces[0], "aaaaaaaa");
  EXPECT_EQ(pieces.back(), "a");
}

TEST(Bpe, RemembersWordsInBoundedMemory) {
  const Bpe bpe = Bpe::parse("#version: 0.2\na b\n", "codes");
  const double before = heap_in_use();
  double most = 0;
  // Short words, then long ones: 50 MB of each, were all of them kept.
  for (const auto& [length, count] : {std::pair(10, 110'000), {250, 6'000}})
    for (int i = 0; i < count; ++i) {
      std::string word = std::to_string(i);
      word.resize(static_cast<size_t>(length), 'x');
      bpe.segment_words({word});
      if (i % 1'000 == 0)
        most = std::max(most, heap_in_use() - before);
    }
  EXPECT_GT(most, 20e6);
  EXPECT_LT(most, 45e6);
}

TEST(Bpe, AnyBytesArePutTogetherAgain) {
  std::mt19937 random(5);
  const Bpe bpe = Bpe::parse("#version: 0.2\na b\nab a</w>\n", "codes");
  for (int round = 0; round < 2000; ++round) {
    std::string word;
    for (int i = 0; i < 12; ++i)
      word += static_cast<char>(random() % 3 == 0 ? random() : 'a' + random() % 2);
    std::string joined;
    for (const std::string& piece : bpe.segment_word(word))
      joined += piece;
    EXPECT_EQ(joined, word);
  }
}

TEST(BpeTrainer, LearnsTheMostFrequentPairsAndBreaksTiesByText) {
  // From the definition by hand: (l, o) and (o, w</w>) come 7 times; the later
  // one in the order of texts goes first.
  WordCounts counts = {{"low", 5}, {"slow", 2}, {"new", 3}};
  EXPECT_THAT(
      parse_lines(learn_bpe(counts, 3)),
      ElementsAre("#version: 0.2", "o w</w>", "l ow</w>", "n e"));
}

TEST(BpeTrainer, StopsAtRarePairs) {
  set_log_level(LogLevel::kError);
  const WordCounts counts = {{"ab", 2}, {"cd", 1}};
  EXPECT_EQ(learn_bpe(counts, 100), "#version: 0.2\na b</w>\n");
  EXPECT_EQ(learn_bpe(counts, 100, 1), "#version: 0.2\na b</w>\nc d</w>\n");
  EXPECT_EQ(learn_bpe(counts, 100, 3), "#version: 0.2\n");
  set_log_level(LogLevel::kInfo);
}

TEST(BpeTrainer, CountsWordsBetweenBlanks) {
  WordCounts counts;
  count_words("  a b  a\tb a ", counts);
  EXPECT_EQ(counts, (WordCounts{{"a", 2}, {"b", 1}, {"a\tb", 1}}));
  counts.clear();
  count_words("a b\r\na\rb\vb \u2028a\n", counts);
  EXPECT_EQ(counts, (WordCounts{{"a", 3}, {"b", 2}, {"b\v", 1}, {"\u2028", 1}}))
      << "lines end where Python ends them, and keep the sign";
}

TEST(BpeTrainer, LearnedCodesApplyToTheTrainingWords) {
  const TemporaryFolder folder;
  const std::string file = folder.write("text", "low low low lower lower newest newest wider\n");
  const Bpe bpe = Bpe::parse(learn_bpe({file}, 4), "codes");
  EXPECT_EQ(bpe.segment_line("low lower"), "low lo@@ we@@ r");
}

TEST(BpeTrainer, ErrorsSayWhatWasWanted) {
  EXPECT_EQ(
      error_of([] {
        learn_bpe(WordCounts{{"a", 3}, {"b", 1}}, 5);
      }),
      "BPE cannot be learned: none of the 2 different words has two characters");
  EXPECT_EQ(
      error_of([] {
        learn_bpe(WordCounts{{"ab", 3}}, 0);
      }),
      "BPE merges must be >= 1, but got 0");
  EXPECT_EQ(
      error_of([] {
        learn_bpe(WordCounts{{"ab", 3}}, 1, 0);
      }),
      "the least frequency of a BPE pair must be >= 1, but got 0");
  const TemporaryFolder folder;
  const std::string bad = folder.write("bad", "fine\n\xFF\n");
  EXPECT_THAT(error_of([&] { learn_bpe({bad}, 5); }), HasSubstr(bad + ":2: UTF-8 was wanted"));
}

}  // namespace
}  // namespace seqconv::internal
