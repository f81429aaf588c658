#include <gtest/gtest.h>

#include <fstream>

#include "real_data.h"
#include "seqconv/metrics/bleu.h"
#include "seqconv/metrics/chrf.h"

namespace seqconv {
namespace {

using testing::data_folder;
using testing::read_packed;
using Lines = std::vector<std::string>;

/// One language pair of WMT22 with its published scores.
struct Wmt22 {
  std::filesystem::path folder;
  std::string language;
  Lines reference_a;
  Lines reference_b;

  Wmt22(const std::filesystem::path& path, const std::string& target)
      : folder(path),
        language(target),
        reference_a(read_packed(folder / ("ref.A." + target + ".xz"))),
        reference_b(read_packed(folder / ("ref.B." + target + ".xz"))) {}

  std::vector<Lines> references(const std::string& which) const {
    if (which == "A")
      return {reference_a};
    if (which == "B")
      return {reference_b};
    return {reference_a, reference_b};
  }
};

/// Compares every row "system metric-references score" whose metric is
/// `metric`, and returns their number.
template <class Score>
int compare_rows(const Wmt22& task, const std::string& metric, Score score) {
  std::ifstream table(task.folder / "scores.tsv");
  std::string line;
  std::getline(table, line);
  std::string system;
  std::string name;
  double published = 0;
  int rows = 0;
  while (table >> system >> name >> published) {
    const size_t dash = name.find('-');
    if (name.substr(0, dash) != metric)
      continue;
    const Lines hypotheses = read_packed(
        task.folder / ("hyp." + system + "." + task.language + ".xz"));
    EXPECT_NEAR(
        score(hypotheses, task.references(name.substr(dash + 1))),
        published,
        1e-9)
        << system << " " << name;
    ++rows;
  }
  return rows;
}

class Wmt22Golden : public ::testing::TestWithParam<const char*> {};

TEST_P(Wmt22Golden, BleuEqualsThePublishedScores) {
  const auto folder =
      data_folder() / "metric-checks" / (std::string("wmt22-") + GetParam());
  SEQCONV_REQUIRE_DATA(folder);
  const int rows = compare_rows(
      Wmt22(folder, std::string(GetParam()).substr(3)),
      "bleu",
      [](const Lines& hypotheses, const std::vector<Lines>& references) {
        return corpus_bleu(hypotheses, references).score().score;
      });
  EXPECT_EQ(rows, 27);
}

TEST_P(Wmt22Golden, ChrfEqualsThePublishedScores) {
  const auto folder =
      data_folder() / "metric-checks" / (std::string("wmt22-") + GetParam());
  SEQCONV_REQUIRE_DATA(folder);
  const int rows = compare_rows(
      Wmt22(folder, std::string(GetParam()).substr(3)),
      "chrf",
      [](const Lines& hypotheses, const std::vector<Lines>& references) {
        return corpus_chrf(hypotheses, references).score();
      });
  EXPECT_EQ(rows, 27);
}

INSTANTIATE_TEST_SUITE_P(
    Pairs,
    Wmt22Golden,
    ::testing::Values("de-en", "en-de"),
    [](const auto& info) {
      return std::string(info.param) == "de-en" ? "GermanEnglish"
                                                : "EnglishGerman";
    });

TEST(TedGolden, ScoresEqualThePublishedFigures) {
  const auto folder = data_folder() / "metric-checks" / "ted-slk-en";
  SEQCONV_REQUIRE_DATA(folder);
  const auto read = [&](const char* name) {
    return read_packed(folder / (std::string("ted.") + name + ".eng.xz"));
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
  EXPECT_NEAR(
      corpus_bleu(read("sys1.detok"), reference).score().score,
      21.71,
      0.005);
  EXPECT_NEAR(
      corpus_bleu(read("sys2.detok"), reference).score().score,
      23.05,
      0.005);
  EXPECT_NEAR(corpus_chrf(read("sys1.detok"), reference).score(), 48.3, 0.05);
  EXPECT_NEAR(corpus_chrf(read("sys2.detok"), reference).score(), 45.6, 0.05);
}

}  // namespace
}  // namespace seqconv
