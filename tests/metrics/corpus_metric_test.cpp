#include "seqconv/metrics/corpus_metric.h"

#include <gmock/gmock.h>

#include "seqconv/metrics/significance.h"
#include "support/errors.h"

namespace seqconv {
namespace {

using Lines = std::vector<std::string>;

const Lines kHypotheses = {
    "The house is very small .",
    "A dog runs over the green grass",
    "yes"};
const Lines kReferences = {
    "The house is small .",
    "a dog ran across the grass",
    "yes "};

/// A metric that was fed, and the numbers of its sentences.
struct Fed {
  std::unique_ptr<CorpusMetric> metric;
  SentenceStatistics statistics;
};

Fed fed(std::unique_ptr<CorpusMetric> metric) {
  Fed fed{std::move(metric), {}};
  for (size_t i = 0; i < kHypotheses.size(); ++i)
    fed.statistics.add(fed.metric->add(kHypotheses[i], {kReferences[i]}));
  return fed;
}

TEST(CorpusMetrics, AreThoseOfTheirOwnClasses) {
  for (const bool lowercase : {false, true}) {
    EXPECT_EQ(
        fed(make_metric(MetricKind::kBleu, lowercase)).metric->report(),
        corpus_bleu(kHypotheses, {kReferences}, {.lowercase = lowercase})
            .report());
    EXPECT_EQ(
        fed(make_metric(MetricKind::kChrf, lowercase)).metric->report(),
        corpus_chrf(kHypotheses, {kReferences}, {.lowercase = lowercase})
            .report());
  }
  EXPECT_EQ(
      fed(make_metric(MetricKind::kTer, false)).metric->report(),
      corpus_ter(kHypotheses, {kReferences}).report());
  const auto rouge = corpus_rouge(kHypotheses, {kReferences}).score();
  EXPECT_EQ(
      fed(make_metric(MetricKind::kRouge1, false)).metric->score(),
      rouge[0].f);
  EXPECT_EQ(
      fed(make_metric(MetricKind::kRouge2, false)).metric->score(),
      rouge[1].f);
  EXPECT_EQ(
      fed(make_metric(MetricKind::kRougeL, false)).metric->score(),
      rouge[2].f);
  EXPECT_EQ(
      fed(make_metric(MetricKind::kExact, false)).metric->report(),
      "EXACT|nrefs:1|case:mixed|version:seqconv-0.1.0 = 33.33 (1 of 3)");
}

TEST(CorpusMetrics, SumsOfTheNumbersOfSentencesMakeTheScore) {
  std::vector<std::string> names;
  for (const auto& [key, kind] : EnumNames<MetricKind>::kNames) {
    const Fed all = fed(make_metric(kind, true));
    EXPECT_GT(all.metric->score(), 0) << key;
    EXPECT_LT(all.metric->score(), 100) << key;
    for (size_t i = 0; i < all.metric->measures(); ++i)
      EXPECT_DOUBLE_EQ(
          all.metric->score_of_sums(i).exact(all.statistics.sums()),
          all.metric->score(i))
          << key;
    EXPECT_EQ(all.metric->larger_is_better(), kind != MetricKind::kTer);
    names.push_back(all.metric->name());
  }
  EXPECT_THAT(
      names,
      ::testing::ElementsAre(
          "BLEU",
          "chrF2",
          "TER",
          "ROUGE-1",
          "ROUGE-2",
          "ROUGE-L",
          "EXACT"));
}

TEST(CorpusMetrics, SayHowTheyWereComputedAndWhatIsWrong) {
  for (const auto& [key, kind] : EnumNames<MetricKind>::kNames) {
    const auto metric = fed(make_metric(kind, true)).metric;
    EXPECT_THAT(metric->signature(), ::testing::HasSubstr("version:seqconv"));
    EXPECT_THAT(metric->report(), ::testing::HasSubstr(metric->signature()));
    EXPECT_THAT(
        testing::error_of([&] {
          metric->add("a", {"a", "b"});
        }),
        ::testing::HasSubstr("1 references like the first, but got 2"));
  }
}

}  // namespace
}  // namespace seqconv
