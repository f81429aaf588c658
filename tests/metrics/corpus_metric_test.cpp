#include "metrics/corpus_metric.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "metrics/missing_words.h"
#include "metrics/significance.h"
#include "support/errors.h"

namespace seqconv::internal {
namespace {

using Lines = std::vector<std::string>;

const Lines kHypotheses = {"The house is very small .", "A dog runs over the green grass", "yes"};
const Lines kReferences = {"The house is small .", "a dog ran across the grass", "yes "};

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
        corpus_bleu(kHypotheses, {kReferences}, {.lowercase = lowercase}).report());
    EXPECT_EQ(
        fed(make_metric(MetricKind::kChrf, lowercase)).metric->report(),
        corpus_chrf(kHypotheses, {kReferences}, {.lowercase = lowercase}).report());
  }
  EXPECT_EQ(
      fed(make_metric(MetricKind::kTer, false)).metric->report(),
      corpus_ter(kHypotheses, {kReferences}).report());
  const auto rouge = corpus_rouge(kHypotheses, {kReferences}).score();
  EXPECT_EQ(fed(make_metric(MetricKind::kRouge1, false)).metric->score(), rouge[0].f);
  EXPECT_EQ(fed(make_metric(MetricKind::kRouge2, false)).metric->score(), rouge[1].f);
  EXPECT_EQ(fed(make_metric(MetricKind::kRougeL, false)).metric->score(), rouge[2].f);
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
          all.metric->score_of_sums(i).exact(all.statistics.sums()), all.metric->score(i))
          << key;
    EXPECT_EQ(all.metric->larger_is_better(), kind != MetricKind::kTer);
    names.push_back(all.metric->name());
  }
  EXPECT_THAT(
      names,
      ::testing::ElementsAre("BLEU", "chrF2", "TER", "ROUGE-1", "ROUGE-2", "ROUGE-L", "EXACT"));
}

TEST(CorpusMetrics, SayHowTheyWereComputedAndWhatIsWrong) {
  for (const auto& [key, kind] : EnumNames<MetricKind>::kNames) {
    const auto metric = fed(make_metric(kind, true)).metric;
    EXPECT_THAT(metric->signature(), ::testing::HasSubstr("version:seqconv"));
    EXPECT_THAT(metric->report(), ::testing::HasSubstr(metric->signature()));
    EXPECT_THAT(metric->signature(), ::testing::HasSubstr("nrefs:1|"));
    metric->add("a", {"a", "b"});
    EXPECT_THAT(metric->signature(), ::testing::HasSubstr("nrefs:var|"));
    EXPECT_EQ(
        testing::error_of([&] { metric->add("a", {}); }),
        "a score needs at least one reference, but got 0");
  }
}

TEST(CorpusMetrics, MayBeFedWhatOthersHaveCounted) {
  for (const auto& [key, kind] : EnumNames<MetricKind>::kNames) {
    const auto metric = make_metric(kind, true);
    for (size_t i = 0; i < kHypotheses.size(); ++i) {
      std::vector<double> numbers = {7};  // of another sentence
      make_metric(kind, true)->count(kHypotheses[i], {kReferences[i]}, numbers);
      metric->add_counted(std::span(numbers).subspan(1), 1);
    }
    const auto whole = fed(make_metric(kind, true)).metric;
    EXPECT_EQ(metric->report(15), whole->report(15)) << key;
  }
}

TEST(CorpusMetrics, AreComputedAsTheOptionsSay) {
  MetricOptions options;
  options.bleu.order = 2;
  options.chrf.word_order = 2;
  options.rouge.tokenizer = RougeWords::kUnicode;
  options.rouge.order = 1;
  const auto signature = [&](MetricKind kind) {
    return fed(make_metric(kind, true, options)).metric->signature();
  };
  EXPECT_THAT(
      signature(MetricKind::kBleu),
      ::testing::HasSubstr("case:lc|eff:no|tok:13a|smooth:exp|order:2|"));
  EXPECT_THAT(signature(MetricKind::kChrf), ::testing::HasSubstr("|nw:2|"));
  for (const MetricKind kind : {MetricKind::kRouge1, MetricKind::kRouge2, MetricKind::kRougeL})
    EXPECT_THAT(signature(kind), ::testing::HasSubstr("|tok:unicode|"));
  EXPECT_EQ(make_metric(MetricKind::kRougeL, false, options)->name(), "ROUGE-L");
  options.bleu.tokenizer = BleuTokenizer::kSpm;
  EXPECT_THAT(
      testing::error_of<UsageError>([&] { options.validate(); }),
      ::testing::StartsWith("metrics.bleu.tokenizer = 'spm' needs a model"));
}

TEST(MissingWords, AreToldWithTheOptionThatHelps) {
  const Lines chinese = {"今天天气很好", "你好"};
  const Lines japanese = {"昨日の会議でこの問題について話しました。"};
  const Lines russian = {"Собака бежит по траве"};
  const WordsOf whose{"the hypotheses are"};
  using ::testing::HasSubstr;
  EXPECT_THAT(
      missing_words(chinese, BleuOptions(), whose),
      HasSubstr("are Chinese, which has no blanks between words: BLEU by blanks says little; "
                "--tokenizer char, zh or spm finds"));
  BleuOptions zh;
  zh.tokenizer = BleuTokenizer::kZh;
  EXPECT_EQ(missing_words(chinese, zh, whose), "");
  EXPECT_THAT(
      missing_words(japanese, zh, whose),
      HasSubstr("the tokenizer zh finds words in Chinese alone"));
  for (const Lines& lines : {chinese, japanese, russian})
    EXPECT_THAT(
        missing_words(lines, RougeOptions(), whose),
        HasSubstr("--tokenizer unicode takes words of all scripts"));
  EXPECT_THAT(
      missing_words(russian, MetricKind::kRougeL, MetricOptions()),
      HasSubstr("metrics.rouge.tokenizer = 'unicode'"));
  RougeOptions unicode;
  unicode.tokenizer = RougeWords::kUnicode;
  EXPECT_EQ(missing_words(russian, unicode, whose), "");
  EXPECT_EQ(missing_words(russian, BleuOptions(), whose), "");
  EXPECT_EQ(missing_words({"Ça été très bien"}, RougeOptions(), whose), "");
  EXPECT_THAT(
      missing_words(chinese, TerOptions(), whose), HasSubstr("--normalized with --asian-support"));
  const TerOptions asian{.normalized = true, .asian_support = true};
  EXPECT_EQ(missing_words(chinese, asian, whose), "");
  EXPECT_THAT(missing_words(japanese, asian, whose), HasSubstr("chrf counts"));
  EXPECT_EQ(missing_words(chinese, ChrfOptions(), whose), "");
  EXPECT_THAT(
      missing_words(chinese, ChrfOptions{.word_order = 2}, whose), HasSubstr("--word-order"));
  EXPECT_EQ(missing_words(chinese, ExactOptions(), whose), "");
}

TEST(CorpusMetrics, HaveTheValuesOfRougeThatAreAskedFor) {
  const auto metric = fed(to_corpus_metric(
                              Rouge(),
                              /*first=*/1,
                              {RougeValue::kF, RougeValue::kRecall, RougeValue::kPrecision}))
                          .metric;
  const RougeValues own = corpus_rouge(kHypotheses, {kReferences}).score()[1];
  ASSERT_EQ(metric->measures(), 6u);
  EXPECT_EQ(metric->name(0), "ROUGE-2");
  EXPECT_EQ(metric->name(1), "ROUGE-2 R");
  EXPECT_EQ(metric->name(2), "ROUGE-2 P");
  EXPECT_EQ(metric->name(5), "ROUGE-L P");
  EXPECT_EQ(metric->score(0), own.f);
  EXPECT_EQ(metric->score(1), own.recall);
  EXPECT_EQ(metric->score(2), own.precision);
}

}  // namespace
}  // namespace seqconv::internal
