#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "base/error.h"
#include "metrics/bleu.h"
#include "metrics/chrf.h"
#include "metrics/significance.h"
#include "metrics/ter.h"
#include "score_data.h"

namespace seqconv::internal {
namespace {

using testing::made_up_folder;
using testing::read_text;
using testing::real_folders;
using Lines = std::vector<std::string>;
using Folder = std::filesystem::path;

/// A folder of outputs of translation systems with their scores:
/// ref.A.LANGUAGE, ref.B.LANGUAGE and hyp.SYSTEM.LANGUAGE, packed with xz or
/// not, and scores.tsv.
class Scores {
 public:
  explicit Scores(const Folder& folder) : folder_(folder) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      const std::string name = entry.path().filename();
      if (name.starts_with("ref.A."))
        language_ = name.substr(6, name.find('.', 6) - 6);
    }
    a_ = read("ref.A.");
    b_ = read("ref.B.");
  }

  /// Compares every row "system metric-references score" whose metric `score`
  /// knows, and returns their number: score(metric, hypotheses, references).
  template <class Score>
  int compare(const Score& score) const {
    std::ifstream table(folder_ / "scores.tsv");
    std::string system;
    std::getline(table, system);
    std::string name;
    double wanted = 0;
    int rows = 0;
    std::map<std::string, Lines> hypotheses;
    while (table >> system >> name >> wanted) {
      const size_t dash = name.find('-');
      if (!hypotheses.contains(system))
        hypotheses[system] = read("hyp." + system + ".");
      const auto found =
          score(name.substr(0, dash), hypotheses[system], references(name.substr(dash + 1)));
      EXPECT_NEAR(found, wanted, 1e-9) << system << " " << name;
      ++rows;
    }
    return rows;
  }

 private:
  Lines read(const std::string& stem) const { return read_text(folder_ / (stem + language_)); }

  std::vector<Lines> references(const std::string& which) const {
    if (which == "A")
      return {a_};
    if (which == "B")
      return {b_};
    return {a_, b_};
  }

  Folder folder_;
  std::string language_;
  Lines a_;
  Lines b_;
};

/// By the name of a metric in scores.tsv.
double score(const std::string& metric, const Lines& text, const std::vector<Lines>& references) {
  BleuOptions bleu;
  ChrfOptions chrf;
  TerOptions ter;
  if (metric == "chrf++")
    chrf.word_order = 2;
  else if (metric == "chrf_space_lc")
    chrf.whitespace = chrf.lowercase = true;
  else if (metric == "chrf_eps")
    chrf.word_order = 1, chrf.eps_smoothing = true;
  else if (metric == "ter_normalized_cs")
    ter.normalized = ter.case_sensitive = true;
  else if (metric == "ter_asian")
    ter.normalized = ter.no_punct = ter.asian_support = true;
  else if (metric == "bleu_zh")
    bleu.tokenizer = BleuTokenizer::kZh;
  else if (metric == "bleu_intl")
    bleu.tokenizer = BleuTokenizer::kIntl;
  else if (metric == "bleu_char_lc")
    bleu.tokenizer = BleuTokenizer::kChar, bleu.lowercase = true;
  else if (metric == "multi_bleu")
    bleu.style = BleuStyle::kMultiBleu;
  else if (metric != "bleu" && metric != "chrf" && metric != "ter")
    fail("scores.tsv has a metric '", metric, "' that this test does not know");
  if (metric.starts_with("ter"))
    return corpus_ter(text, references, ter).score();
  if (metric.starts_with("chrf"))
    return corpus_chrf(text, references, chrf).score();
  return corpus_bleu(text, references, bleu).score().score;
}

class ScoresGolden : public ::testing::TestWithParam<Folder> {};

TEST_P(ScoresGolden, EqualSacreBleus) {
  EXPECT_GE(Scores(GetParam()).compare(score), 54);
}

INSTANTIATE_TEST_SUITE_P(MadeUp, ScoresGolden, ::testing::Values(made_up_folder()));
INSTANTIATE_TEST_SUITE_P(
    Wmt22, ScoresGolden, ::testing::ValuesIn(real_folders({"wmt22-de-en", "wmt22-en-de"})));

/// The statistics of a system of made_up_folder() with reference A, and how
/// they make a score.
struct Counted {
  SentenceStatistics sentences;
  ScoreOfSums score;
};
template <class Metric, class Numbers>
Counted count_made_up(const std::string& system, Numbers numbers) {
  const auto references = read_text(made_up_folder() / "ref.A.xx");
  const auto hypotheses = read_text(made_up_folder() / ("hyp." + system + ".xx"));
  const Metric metric;
  Counted counted{.score = metric.score_of_sums()};
  for (size_t i = 0; i < hypotheses.size(); ++i)
    counted.sentences.add(numbers(metric.count(hypotheses[i], {references.at(i)})));
  return counted;
}
Counted count_made_up(const std::string& system, const std::string& metric) {
  if (metric == "chrf")
    return count_made_up<Chrf>(system, Chrf::numbers);
  if (metric == "ter")
    return count_made_up<Ter>(system, [](const TerStatistics& counts) { return counts.numbers(); });
  return count_made_up<Bleu>(system, [](const BleuStatistics& counts) { return counts.numbers(); });
}

TEST(SignificanceGolden, EqualsSacreBleus) {
  std::ifstream table(made_up_folder() / "significance.tsv");
  std::string system;
  std::string metric;
  std::string test;
  std::string p_value;
  ConfidenceInterval wanted;
  int rows = 0;
  std::getline(table, system);
  for (; table >> system >> metric >> test >> p_value >> wanted.mean >> wanted.half_width; ++rows) {
    SCOPED_TRACE(concat(system, " ", metric, " ", test));
    const Counted counted = count_made_up(system, metric);
    ConfidenceInterval found;
    if (test == "-") {
      found = bootstrap_interval(counted.sentences, counted.score, {.samples = 300});
    } else {
      PairedTest how{.resampling = {.samples = 300}, .interval_samples = 300};
      how.kind = parse_enum<PairedTestKind>(test, "test");
      const auto results = compare_systems(
          {count_made_up("fair", metric).sentences, counted.sentences}, counted.score, how);
      const ComparedSystem& result = results[system == "fair" ? 0 : 1];
      found = result.interval.value();
      if (p_value == "-")
        EXPECT_FALSE(result.p_value.has_value());
      else
        EXPECT_NEAR(result.p_value.value(), std::stod(p_value), 1e-12);
    }
    EXPECT_NEAR(found.mean, wanted.mean, 1e-9);
    EXPECT_NEAR(found.half_width, wanted.half_width, 1e-9);
  }
  EXPECT_EQ(rows, 36);
}

class TedGolden : public ::testing::TestWithParam<Folder> {};

TEST_P(TedGolden, ScoresEqualThePublishedFigures) {
  const auto read = [&](const char* name) {
    return read_text(GetParam() / (std::string("ted.") + name + ".eng"));
  };
  BleuOptions multi_bleu;
  multi_bleu.style = BleuStyle::kMultiBleu;
  const auto tokenised = [&](const char* system) {
    return corpus_bleu(read(system), {read("ref")}, multi_bleu).score();
  };
  EXPECT_NEAR(tokenised("sys1").score, 22.44, 0.005);
  EXPECT_NEAR(tokenised("sys2").score, 24.04, 0.005);
  EXPECT_EQ(tokenised("sys1").statistics.hypothesis_length, 45672);
  EXPECT_EQ(tokenised("sys1").statistics.reference_length, 48183);
  const std::vector<Lines> reference = {read("ref.detok")};
  EXPECT_NEAR(corpus_bleu(read("sys1.detok"), reference).score().score, 21.71, 0.005);
  EXPECT_NEAR(corpus_bleu(read("sys2.detok"), reference).score().score, 23.05, 0.005);
  EXPECT_NEAR(corpus_chrf(read("sys1.detok"), reference).score(), 48.3, 0.05);
  EXPECT_NEAR(corpus_chrf(read("sys2.detok"), reference).score(), 45.6, 0.05);
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TedGolden);
INSTANTIATE_TEST_SUITE_P(Ted, TedGolden, ::testing::ValuesIn(real_folders({"ted-slk-en"})));

}  // namespace
}  // namespace seqconv::internal
