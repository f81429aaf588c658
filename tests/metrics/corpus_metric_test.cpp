#include "seqconv/metrics/corpus_metric.h"

#include <gmock/gmock.h>

#include "seqconv/metrics/bleu.h"
#include "seqconv/metrics/chrf.h"
#include "seqconv/metrics/rouge.h"
#include "support/errors.h"

namespace seqconv {
namespace {

const std::vector<std::string> kHypotheses = {
    "The house is very small .",
    "A dog runs over the green grass"};
const std::vector<std::string> kReferences = {
    "The house is small .",
    "a dog ran across the grass"};

std::unique_ptr<CorpusMetric> fed(MetricKind kind, bool lowercase) {
  auto metric = make_metric(kind, lowercase);
  for (size_t i = 0; i < kHypotheses.size(); ++i)
    metric->add(kHypotheses[i], {kReferences[i]});
  return metric;
}

TEST(CorpusMetrics, AreThoseOfTheirOwnClasses) {
  for (const bool lowercase : {false, true}) {
    EXPECT_EQ(
        fed(MetricKind::kBleu, lowercase)->report(),
        corpus_bleu(kHypotheses, {kReferences}, {.lowercase = lowercase})
            .report());
    EXPECT_EQ(
        fed(MetricKind::kChrf, lowercase)->report(),
        corpus_chrf(kHypotheses, {kReferences}, {.lowercase = lowercase})
            .report());
  }
  const auto rouge = corpus_rouge(kHypotheses, {kReferences}).score();
  EXPECT_EQ(fed(MetricKind::kRouge1, false)->score(), rouge[0].f);
  EXPECT_EQ(fed(MetricKind::kRouge2, false)->score(), rouge[1].f);
  EXPECT_EQ(fed(MetricKind::kRougeL, true)->score(), rouge[2].f);
}

TEST(CorpusMetrics, AllHaveAScoreANameAndASignature) {
  std::vector<std::string> names;
  for (const auto& [key, kind] : EnumNames<MetricKind>::kNames) {
    const auto metric = fed(kind, true);
    EXPECT_GT(metric->score(), 0) << key;
    EXPECT_LT(metric->score(), 100) << key;
    EXPECT_THAT(metric->signature(), ::testing::HasSubstr("version:seqconv"));
    EXPECT_THAT(metric->report(), ::testing::HasSubstr(metric->signature()));
    EXPECT_THAT(
        testing::error_of([&] {
          metric->add("a", {"a", "b"});
        }),
        ::testing::HasSubstr("1 references like the first, but got 2"));
    names.push_back(metric->name());
  }
  EXPECT_THAT(
      names,
      ::testing::ElementsAre("BLEU", "chrF2", "ROUGE-1", "ROUGE-2", "ROUGE-L"));
}

}  // namespace
}  // namespace seqconv
