#include "metrics/bleu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "support/errors.h"

namespace seqconv::internal {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using Lines = std::vector<std::string>;

double bleu(
    const Lines& hypotheses,
    const std::vector<Lines>& references,
    const BleuOptions& options = {}) {
  return corpus_bleu(hypotheses, references, options).score().score;
}

BleuOptions multi_bleu() {
  BleuOptions options;
  options.style = BleuStyle::kMultiBleu;
  return options;
}

TEST(BleuTokenizers, Follow13a) {
  const auto tokens = [](std::string_view line) { return tokenize(line, BleuTokenizer::k13a); };
  EXPECT_THAT(
      tokens("Hello, world! (It's 3.5 or 1,000.)"),
      ElementsAre("Hello", ",", "world", "!", "(", "It's", "3.5", "or", "1,000", ".", ")"));
  EXPECT_THAT(tokens("1990-2000 well-known"), ElementsAre("1990", "-", "2000", "well-known"));
  EXPECT_THAT(
      tokens("&quot;a&amp;b&quot; &lt;c&gt;"),
      ElementsAre("\"", "a", "&", "b", "\"", "<", "c", ">"));
  EXPECT_THAT(tokens("a <skipped>b 5."), ElementsAre("a", "b", "5", "."));
  EXPECT_THAT(tokens("x-\ny\nz"), ElementsAre("xy", "z"));
  EXPECT_THAT(tokens("été…ça .5"), ElementsAre("été…ça", ".", "5"));
  EXPECT_TRUE(tokens(" \xC2\xA0 ").empty());
}

TEST(BleuTokenizers, FollowIntl) {
  const auto tokens = [](std::string_view line) { return tokenize(line, BleuTokenizer::kIntl); };
  EXPECT_THAT(tokens("«Été», 3,5 €!"), ElementsAre("«", "Été", "»", ",", "3,5", "€", "!"));
  EXPECT_THAT(tokens("In 1990."), ElementsAre("In", "1990."));
}

TEST(BleuTokenizers, SplitCharactersAndWords) {
  EXPECT_THAT(tokenize("aé 漢", BleuTokenizer::kChar), ElementsAre("a", "é", "漢"));
  EXPECT_THAT(tokenize("a, b\xE3\x80\x80.", BleuTokenizer::kNone), ElementsAre("a,", "b", "."));
}

TEST(BleuTokenizers, AnyBytesMakeTokensWithoutWhiteSpace) {
  std::mt19937 random(17);
  for (int round = 0; round < 3000; ++round) {
    std::string line;
    for (int i = 0; i < 30; ++i)
      line += static_cast<char>(random() % 2 ? random() : 32 + random() % 32);
    for (auto tokenizer :
         {BleuTokenizer::k13a,
          BleuTokenizer::kNone,
          BleuTokenizer::kIntl,
          BleuTokenizer::kZh,
          BleuTokenizer::kChar})
      for (const std::string& token : tokenize(line, tokenizer)) {
        EXPECT_FALSE(token.empty());
        EXPECT_EQ(token.find_first_of(" \t\n\v\f\r"), std::string::npos);
      }
    split_compounds(line);
  }
}

TEST(CompoundSplit, UsesEachCharacterOnceFromLeftToRight) {
  EXPECT_EQ(split_compounds("ab-cd-ef"), "ab ##AT##-##AT## cd ##AT##-##AT## ef");
  EXPECT_EQ(split_compounds("a-b-c"), "a ##AT##-##AT## b-c");
  EXPECT_EQ(split_compounds("é-ü x - y -z w-"), "é ##AT##-##AT## ü x - y -z w-");
  EXPECT_EQ(split_compounds("a--b"), "a ##AT##-##AT## -b");
  EXPECT_EQ(split_compounds(""), "");
}

TEST(Bleu, OfEqualTextIs100) {
  EXPECT_NEAR(bleu({"a b c d e"}, {{"a b c d e"}}), 100, 1e-9);
}

TEST(Bleu, FollowsTheDefinition) {
  // 3 of 4 words, 2 of 3 pairs, 1 of 2 triples, 0 of 1: smoothed to 1/2.
  const double score = bleu({"a b c x"}, {{"a b c d e"}});
  const double mean = std::pow(3.0 / 4 * (2.0 / 3) * (1.0 / 2) * (1.0 / 2), 0.25);
  EXPECT_NEAR(score, 100 * mean * std::exp(1 - 5.0 / 4), 1e-9);
  BleuOptions none;
  none.smoothing = BleuSmoothing::kNone;
  EXPECT_EQ(bleu({"a b c x"}, {{"a b c d e"}}, none), 0);
}

TEST(Bleu, ClipsRepeatedNgramsToTheBestReference) {
  const Bleu result = corpus_bleu({"the the the the"}, {{"the cat"}, {"the big the"}});
  EXPECT_EQ(result.statistics().correct[0], 2);
  EXPECT_EQ(result.statistics().total[0], 4);
  EXPECT_EQ(result.statistics().reference_length, 3);
}

TEST(Bleu, OfTwoEquallyNearReferencesTakesTheShorter) {
  const Bleu result = corpus_bleu({"a b c"}, {{"a b c d"}, {"a b"}});
  EXPECT_EQ(result.statistics().reference_length, 2);
}

TEST(Bleu, OfNothingIsZero) {
  EXPECT_EQ(bleu({""}, {{"a b c d"}}), 0);
  EXPECT_EQ(bleu({"a b c d"}, {{""}}), 0);
  EXPECT_EQ(bleu({""}, {{""}}), 0);
  EXPECT_EQ(bleu({"a b c"}, {{"a b c"}}), 0);  // no 4-grams at all
  EXPECT_EQ(Bleu().score().score, 0);
}

TEST(Bleu, StatisticsAddUp) {
  const Lines hypotheses = {"a b c d", "e f g h i", ""};
  const Lines references = {"a b c e", "e f g h j", "k"};
  BleuStatistics sum;
  for (size_t i = 0; i < hypotheses.size(); ++i)
    sum += corpus_bleu({hypotheses[i]}, {{references[i]}}).statistics();
  EXPECT_EQ(compute_bleu(sum).score, bleu(hypotheses, {references}));
}

TEST(Bleu, LowerCasesWhenAsked) {
  BleuOptions options;
  options.lowercase = true;
  EXPECT_NEAR(bleu({"Ä B C D"}, {{"ä b c d"}}, options), 100, 1e-9);
  EXPECT_EQ(bleu({"Ä B C D"}, {{"ä b c d"}}), 0);
}

TEST(Bleu, ReportsInSacreBleusForm) {
  const Bleu result = corpus_bleu({"a b c x"}, {{"a b c d e"}, {"x"}});
  // The numbers are what sacreBLEU 2.6.0 prints.
  EXPECT_EQ(
      result.report(),
      "BLEU|nrefs:2|case:mixed|eff:no|tok:13a|smooth:exp|version:seqconv-0.1.0 = 49.76 "
      "100.0/66.7/50.0/50.0 (BP = 0.779 ratio = 0.800 hyp_len = 4 ref_len = 5)");
}

TEST(MultiBleu, SplitsAtWhiteSpaceAndDoesNotSmooth) {
  EXPECT_EQ(bleu({"a b c x"}, {{"a b c d"}}, multi_bleu()), 0);
  EXPECT_NEAR(bleu({"a, b c d"}, {{"a, b c d"}}, multi_bleu()), 100, 1e-9);
  EXPECT_EQ(
      corpus_bleu({"a, b c d"}, {{"a, b c d e"}}, multi_bleu()).report(),
      "BLEU4 = 77.88, 100.0/100.0/100.0/100.0 (BP=0.779, ratio=0.800, syslen=4, reflen=5)");
  EXPECT_EQ(
      corpus_bleu({"a"}, {{"a"}}, multi_bleu()).signature(),
      "nrefs:1|case:mixed|style:multi-bleu|split:no|version:seqconv-0.1.0");
}

TEST(MultiBleu, AnUnknownWordInTheReferenceMatchesNothing) {
  const Bleu result = corpus_bleu({"a <unk> b"}, {{"a <unk> b"}}, multi_bleu());
  EXPECT_EQ(result.statistics().correct[0], 2);
  EXPECT_EQ(result.statistics().reference_length, 3);
}

TEST(MultiBleu, SplitsCompoundsOnBothSides) {
  BleuOptions options = multi_bleu();
  options.compound_split = true;
  const Bleu result = corpus_bleu({"ab-cd ef"}, {{"ab-xy ef"}}, options);
  EXPECT_EQ(result.statistics().correct[0], 3);
  EXPECT_EQ(result.statistics().total[0], 4);
}

TEST(Bleu, ErrorsSayWhatWasWanted) {
  EXPECT_EQ(
      error_of([] {
        corpus_bleu({"a", "b"}, {{"a"}});
      }),
      "hypotheses and references must have the same number of lines, but got 2 hypotheses and 1 "
      "lines in reference 1");
  EXPECT_EQ(
      error_of([] {
        corpus_bleu({"a"}, {{"a"}, {"a", "b"}});
      }),
      "hypotheses and references must have the same number of lines, but got 1 hypotheses and 2 "
      "lines in reference 2");
  EXPECT_EQ(
      error_of([] { corpus_bleu({"a"}, {}); }), "a score needs at least one reference, but got 0");
  EXPECT_EQ(error_of([] { corpus_bleu({}, {{}}); }), "a score needs hypotheses, but got 0");
}

TEST(Bleu, SentencesMayHaveOtherNumbersOfReferences) {
  Bleu bleu;
  bleu.add("a b c d", {"a b c d", "x"});
  bleu.add("e f g h", {"e f g h"});
  EXPECT_NEAR(bleu.score().score, 100, 1e-9);
  EXPECT_EQ(
      bleu.signature(), "nrefs:var|case:mixed|eff:no|tok:13a|smooth:exp|version:seqconv-0.1.0");
}

// The scores are what sacreBLEU 2.6.0 gives.
TEST(Bleu, SmoothsAsAsked) {
  const std::string reference = "The man had bitten the dog.";
  const std::string system = "The man had just bit him.";
  const auto score = [&](BleuSmoothing smoothing, double value) {
    BleuOptions options;
    options.smoothing = smoothing;
    options.smoothing_value = value;
    options.effective_order = true;
    return bleu({system}, {{reference}}, options);
  };
  constexpr double kUsual = BleuOptions::kUsualValue;
  EXPECT_NEAR(score(BleuSmoothing::kExp, kUsual), 26.269098944241588, 1e-9);
  EXPECT_EQ(score(BleuSmoothing::kNone, kUsual), 0);
  EXPECT_NEAR(score(BleuSmoothing::kFloor, kUsual), 17.56720523942793, 1e-9);
  EXPECT_NEAR(score(BleuSmoothing::kFloor, 0.5), 26.269098944241588, 1e-9);
  EXPECT_NEAR(score(BleuSmoothing::kAddK, kUsual), 35.74567288497839, 1e-9);
  EXPECT_NEAR(score(BleuSmoothing::kAddK, 2), 44.947804052082695, 1e-9);
}

TEST(Bleu, TakesNgramsUpToTheOrder) {
  const double wanted[] = {
      100.00000000000004,
      100.00000000000004,
      94.99142515929965,
      80.91067115702214,
      61.18016473967346,
      46.952696318122634};  // of sacreBLEU 2.6.0
  for (int64_t order = 1; order <= 6; ++order) {
    BleuOptions options;
    options.order = order;
    EXPECT_NEAR(
        bleu(
            {"the man had just bitten him in the park"},
            {{"the man had bitten him in the park"}, {"he had just bitten him"}},
            options),
        wanted[order - 1],
        1e-9)
        << order;
  }
}

TEST(Bleu, OfVeryManyWordsAndHighOrdersIsThatOfNgrams) {
  // 16 words of 9 bits fit into no number of 128 bits: others count them.
  std::string text;
  for (int i = 0; i < 300; ++i)
    text += concat("w", i * 7 % 300, " w", i % 3, " ");
  const std::string other = "w1 w2 " + text.substr(9, text.size() / 2) + " x";
  BleuOptions options;
  options.order = 16;
  options.tokenizer = BleuTokenizer::kNone;
  Bleu high(options);
  options.order = 4;
  Bleu low(options);
  const BleuStatistics many = high.add(other, {text, "w1 w2 x"});
  const BleuStatistics few = low.add(other, {text, "w1 w2 x"});
  for (size_t n = 0; n < 4; ++n) {
    EXPECT_EQ(many.correct[n], few.correct[n]);
    EXPECT_EQ(many.total[n], few.total[n]);
  }
  EXPECT_GT(many.correct[15], 100);
  EXPECT_EQ(many.total[15], many.hypothesis_length - 15);
}

TEST(Bleu, OfASentenceTakesTheOrdersThatItHas) {
  BleuOptions options;
  options.effective_order = true;
  EXPECT_NEAR(bleu({"a b"}, {{"a b"}}, options), 100, 1e-9);
  EXPECT_EQ(bleu({"a b"}, {{"a b"}}), 0);
}

TEST(Bleu, SignaturesAreSacreBleus) {
  const auto signature = [](auto change) {
    BleuOptions options;
    change(options);
    Bleu metric(options);
    metric.add("a", {"a"});
    return metric.signature();
  };
  EXPECT_EQ(
      signature([](BleuOptions& o) { o.smoothing = BleuSmoothing::kFloor; }),
      "nrefs:1|case:mixed|eff:no|tok:13a|smooth:floor[0.10]|version:seqconv-0.1.0");
  EXPECT_EQ(
      signature([](BleuOptions& o) {
        o.smoothing = BleuSmoothing::kAddK;
        o.smoothing_value = 2.5;
        o.effective_order = true;
      }),
      "nrefs:1|case:mixed|eff:yes|tok:13a|smooth:add-k[2.50]|version:seqconv-0.1.0");
  EXPECT_EQ(
      signature([](BleuOptions& o) { o.order = 2; }),
      "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|order:2|version:seqconv-0.1.0");
}

TEST(Bleu, ValuesWithoutEffectAreUsageErrors) {
  const auto error = [](auto change) {
    BleuOptions options;
    change(options);
    return error_of<UsageError>([&] { options.validate("bleu"); });
  };
  EXPECT_EQ(
      error([](BleuOptions& o) { o.smoothing_value = 0.5; }),
      "bleu.smoothing_value has no effect with bleu.smoothing = 'exp'");
  EXPECT_EQ(
      error([](BleuOptions& o) {
        o.smoothing = BleuSmoothing::kFloor;
        o.smoothing_value = -2;
      }),
      "bleu.smoothing_value must be >= 0, but got -2");
  EXPECT_EQ(
      error([](BleuOptions& o) { o.order = 17; }), "bleu.order must be from 1 to 16, but got 17");
  EXPECT_EQ(
      error([](BleuOptions& o) {
        o.style = BleuStyle::kMultiBleu;
        o.order = 2;
      }),
      "bleu.order has no effect with bleu.style = 'multi-bleu'");
}

TEST(Bleu, OptionsOfTheOtherStyleAreUsageErrors) {
  BleuOptions options;
  options.compound_split = true;
  EXPECT_EQ(
      error_of<UsageError>([&] { Bleu bleu(options); }),
      "bleu.compound_split has no effect with bleu.style = 'sacrebleu'");
  options = multi_bleu();
  options.tokenizer = BleuTokenizer::kIntl;
  EXPECT_EQ(
      error_of<UsageError>([&] { Bleu bleu(options); }),
      "bleu.tokenizer has no effect with bleu.style = 'multi-bleu'");
}

}  // namespace
}  // namespace seqconv::internal
