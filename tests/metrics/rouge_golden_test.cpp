#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "metrics/rouge.h"
#include "score_data.h"

namespace seqconv::internal {
namespace {

using testing::made_up_folder;
using testing::read_text;
using testing::real_folders;
using Lines = std::vector<std::string>;
using Folder = std::filesystem::path;

/// What make_rouge.py calls the settings of rouge_scores.tsv.
std::map<std::string, RougeOptions> settings() {
  RougeOptions average;
  average.exceptions = made_up_folder() / "exceptions";
  RougeOptions best = average;
  best.references = RougeReferences::kBest;
  RougeOptions jackknife = average;
  jackknife.references = RougeReferences::kJackknife;
  RougeOptions recall = average;
  recall.alpha = 0.2;
  RougeOptions words;
  words.stem = false;
  RougeOptions package;
  package.style = RougeStyle::kRougeScore;
  RougeOptions package_words = package;
  package_words.stem = false;
  return {
      {"average", average},
      {"best", best},
      {"jackknife", jackknife},
      {"recall", recall},
      {"words", words},
      {"stems", {}},
      {"package", package},
      {"package_words", package_words}};
}

/// A summary, then its references.
Lines split_case(const std::string& line) {
  Lines fields(1);
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\t')
      fields.emplace_back();
    else if (line.compare(i, 2, "\\n") == 0)
      fields.back() += '\n', ++i;
    else
      fields.back() += line[i];
  }
  return fields;
}

std::vector<double> numbers(const std::vector<RougeValues>& values) {
  std::vector<double> all;
  for (const RougeValues& measure : values)
    for (double value : {measure.recall, measure.precision, measure.f})
      all.push_back(value);
  return all;
}

TEST(RougeGolden, OfMadeUpPairsEqualsTheProgramsAndThePackages) {
  const Lines cases = read_text(made_up_folder() / "rouge_cases.tsv");
  std::map<std::string, Rouge> scorers;
  for (const auto& [name, options] : settings())
    scorers.emplace(name, Rouge(options));
  int rows = 0;
  for (const std::string& row : read_text(made_up_folder() / "rouge_scores.tsv")) {
    std::istringstream fields(row);
    std::string setting;
    size_t number = 0;
    ASSERT_TRUE(fields >> setting >> number) << row;
    Lines references = split_case(cases.at(number));
    const std::string summary = references.front();
    references.erase(references.begin());
    const std::vector<double> found = numbers(scorers.at(setting).compare(summary, references));
    // The program prints five decimals of 1, the package's scores have ten.
    for (double value : found) {
      double wanted = 0;
      ASSERT_TRUE(fields >> wanted) << row;
      EXPECT_NEAR(value, 100 * wanted, 1e-7) << row;
    }
    EXPECT_EQ(found.size(), setting.starts_with("package") ? 12U : 9U);
    ++rows;
  }
  EXPECT_EQ(rows, 800);
}

/// The numbers behind the last colon, "31.27/11.07/5.19/25.23/10.79": ROUGE-1,
/// 2, 3, L and SU4.
std::vector<double> published(const std::string& line) {
  std::istringstream text(line.substr(line.rfind(':') + 1));
  std::vector<double> values;
  std::string value;
  while (std::getline(text, value, '/'))
    values.push_back(std::stod(value));
  return values;
}

class XsumGolden : public ::testing::TestWithParam<Folder> {};

// The published scores are means of random resamples and have two decimals.
// They come with WordNet's irregular forms (Debian's wordnet-base).
TEST_P(XsumGolden, ScoresEqualThePublishedFigures) {
  RougeOptions options;
  options.order = 3;
  options.exceptions = "/usr/share/wordnet";
  const Lines gold = read_text(GetParam() / "gold-test-sentences.txt");
  for (const std::string system : {"lead", "ext-oracle", "ptgen", "convs2s", "topic-convs2s"}) {
    const std::string stem = system + "-test-output";
    const auto means =
        corpus_rouge(read_text(GetParam() / (stem + ".txt")), {gold}, options).score();
    int compared = 0;
    for (const std::string& line : read_text(GetParam() / (stem + ".rouge"))) {
      const std::vector<double> wanted = published(line);
      ASSERT_EQ(wanted.size(), 5U) << line;
      for (size_t i = 0; i < means.size(); ++i, ++compared) {
        double value = means[i].f;
        if (line.starts_with("precision"))
          value = means[i].precision;
        else if (line.starts_with("recall"))
          value = means[i].recall;
        EXPECT_NEAR(value, wanted[i], 0.03) << system << " " << line;
      }
    }
    EXPECT_EQ(compared, 12);
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(XsumGolden);
INSTANTIATE_TEST_SUITE_P(Xsum, XsumGolden, ::testing::ValuesIn(real_folders({"xsum-emnlp18"})));

}  // namespace
}  // namespace seqconv::internal
