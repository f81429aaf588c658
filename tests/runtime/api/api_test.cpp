#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

#include "models.h"
#include "support/temporary_folder.h"

/// The library through its header: what a request asks for and gets.
namespace seqconv {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ApiTranslator, GivesTheSameInEveryWay) {
  const Translator translator(kModel, {.threads = 3});
  const auto all = requests(40);
  const auto together = translator.translate(all);
  std::vector<std::future<TranslationResult>> futures;
  for (const TranslationRequest& own : all)
    futures.push_back(translator.translate_async(own));
  for (size_t i = 0; i < all.size(); ++i) {
    ASSERT_TRUE(together[i].ok()) << together[i].error;
    const Translation& one = together[i].translations.at(0);
    const TranslationResult other = futures[i].get();
    EXPECT_EQ(other.translations.at(0).text, one.text);
    EXPECT_EQ(other.translations.at(0).token_scores, one.token_scores);
    const auto alone = translator.translate(std::vector{all[i]});
    EXPECT_EQ(alone[0].translations.at(0).token_scores, one.token_scores);
  }
}

TEST(ApiTranslator, TellsEachResultOnceAndWithItsNumber) {
  const Translator translator(kModel, {.threads = 3});
  const auto all = requests(40);
  const auto wanted = translator.translate(all);
  std::set<size_t> heard;
  translator.translate(all, [&](size_t i, TranslationResult result) {
    EXPECT_TRUE(heard.insert(i).second);
    EXPECT_EQ(result.translations.at(0).text, wanted[i].translations.at(0).text);
  });
  EXPECT_EQ(heard.size(), all.size());
}

TEST(ApiTranslator, TellsAlignmentsWhereTheyAreWanted) {
  const Translator translator(kModel);
  TranslationRequest one = request("dalan mira");
  const TranslationResult plain = translator.translate(std::vector{one}).at(0);
  EXPECT_TRUE(plain.source_tokens.empty());
  one.alignments = Alignments::kShares;
  const TranslationResult found = translator.translate(std::vector{one}).at(0);
  EXPECT_THAT(found.source_tokens, ElementsAre("dalan", "mira", "</s>"));
  EXPECT_THAT(
      found.source_ranges, ElementsAre(ByteRange{0, 5}, ByteRange{6, 10}, ByteRange{10, 10}));
  const Translation& best = found.translations.at(0);
  EXPECT_EQ(best.text, plain.translations.at(0).text);
  EXPECT_EQ(best.token_ranges.size(), best.tokens.size());
  EXPECT_EQ(best.source_shares.size(), 3 * best.tokens.size());
  EXPECT_FALSE(best.alignment.empty());
}

// The file: seqconv shortlist --per-word 1 --common 0 of the folder's own text,
// whose translations are the same words in another order.
TEST(ApiTranslator, ChoosesAmongTheWordsOfAShortlist) {
  const Translator free(kModel), bound(kModel, {.shortlist = SEQCONV_SHORTLIST});
  const std::vector<TranslationRequest> one = {request("dalan mira")};
  const std::set<std::string> listed = {"dalan", "mira", "<unk>", "</s>"};
  const auto other_words = [&](const Translator& translator) {
    size_t others = 0;
    const auto found = translator.translate(one).at(0);
    for (const std::string& token : found.translations.at(0).tokens)
      others += listed.contains(token) ? 0 : 1;
    return others;
  };
  EXPECT_GT(other_words(free), 0U);
  EXPECT_EQ(other_words(bound), 0U);
}

TEST(ApiTranslator, FollowsLinksOutOfAFolderOnlyWhereItIsTold) {
  namespace fs = std::filesystem;
  const internal::testing::TemporaryFolder cache;
  for (const auto& entry : fs::directory_iterator(kModel))
    fs::create_symlink(entry.path(), cache.path() / entry.path().filename());
  const std::string model = cache.path();
  const auto error = [](const auto& open) -> std::string {
    try {
      open();
    } catch (const ModelError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(
      error([&] { Translator translator(model); }),
      HasSubstr("links lead out of it; follow_links"));
  EXPECT_THAT(error([&] { Scorer scorer(model); }), HasSubstr("follow_links"));
  const Translator trusted(model, {.follow_links = true}), real(kModel);
  EXPECT_EQ(trusted.translate("dalan mira").text, real.translate("dalan mira").text);
  EXPECT_EQ(error([&] { Scorer scorer(model, {.follow_links = true}); }), "");
  // Names still lead nowhere else, and a pipe is not waited for.
  fs::remove(cache.path() / "source.dict.txt");
  ASSERT_EQ(::mkfifo((cache.path() / "source.dict.txt").c_str(), 0600), 0);
  EXPECT_THAT(
      error([&] { Translator translator(model, {.follow_links = true}); }),
      HasSubstr("it is a pipe"));
}

TEST(ApiTranslator, DoesNothingForNoRequest) {
  const Translator translator(kModel);
  EXPECT_TRUE(translator.translate(std::vector<TranslationRequest>()).empty());
  const auto empty = translator.translate(std::vector{request("")});
  EXPECT_EQ(empty.at(0).translations.at(0).text, "");
}

TEST(ApiTranslator, ComputesInTheTypeThatIsAskedFor) {
  std::set<std::vector<float>> scores;
  for (const ComputeType type :
       {ComputeType::kModel,
        ComputeType::kAuto,
        ComputeType::kFloat32,
        ComputeType::kBfloat16,
        ComputeType::kInt8}) {
    const Translator translator(kModel, {.compute = type});
    const Translation found = translator.translate("dalan mira");
    EXPECT_FALSE(found.token_scores.empty());
    scores.insert(found.token_scores);
    const double score = Scorer(kModel, {.compute = type}).score("zo", "zo");
    EXPECT_LT(score, 0);
    EXPECT_NE(Generator(kLanguageModel, {.compute = type}).generate("a"), "");
  }
  EXPECT_EQ(scores.size(), 3U);
}

TEST(ApiTranslator, AFailingRequestLeavesTheOthers) {
  const Translator translator(kModel);
  auto all = requests(6);
  all[1].text = "dalan \xff";
  all[2].search.beam = 0;
  all[3].target_prefix = "\xff";
  all[4].sampling = SamplingOptions{.temperature = std::nan("")};
  const auto results = translator.translate(all);
  EXPECT_TRUE(results[0].ok());
  EXPECT_THAT(results[1].error, HasSubstr("UTF-8, but is not at byte 6"));
  EXPECT_THAT(results[2].error, HasSubstr("beam must be between"));
  EXPECT_THAT(results[3].error, HasSubstr("target prefix must be UTF-8"));
  EXPECT_THAT(results[4].error, HasSubstr("sampling.temperature must be"));
  EXPECT_TRUE(results[5].ok());
  for (size_t i = 1; i < 5; ++i) {
    EXPECT_EQ(results[i].status, Status::kInvalid);
    EXPECT_TRUE(results[i].translations.empty());
    const TranslationResult alone = translator.translate_async(all[i]).get();
    EXPECT_EQ(alone.status, Status::kInvalid);
    EXPECT_EQ(alone.error, results[i].error);
  }
  EXPECT_THROW(translator.translate("\xff"), RequestError);
}

TEST(ApiTranslator, TellsWhatWasCutAndWhatIsUnknown) {
  const Translator translator(kModel);
  std::string text = "dalan nowhere-else";
  for (int i = 0; i < 60; ++i)
    text += " mira";
  TranslationRequest longer = request(text);
  longer.target_prefix = "mira zzz";
  const auto result = translator.translate(std::vector{longer}).at(0);
  EXPECT_TRUE(result.ok());
  EXPECT_THAT(
      result.notes,
      ElementsAre(
          HasSubstr("is cut to the model's 48 positions"),
          HasSubstr("symbols of the target prefix are unknown"),
          HasSubstr("of the 47 symbols of the text are unknown")));
}

TEST(ApiTranslator, KeepsProtectedPieces) {
  const Translator translator(kProtectedModel);
  for (const char* const piece : {"{name}", "%1$s", "http://a.b/c", "me@a.org", "3.14"}) {
    const std::string text = std::string("dalan ") + piece + " mira";
    TranslationRequest wanted = request(text);
    wanted.alignments = Alignments::kPairs;
    const TranslationResult result = translator.translate(std::vector{wanted}).at(0);
    ASSERT_TRUE(result.ok()) << result.error;
    const std::string& found = result.translations.at(0).text;
    EXPECT_THAT(found, HasSubstr(piece));
    EXPECT_THAT(found, ::testing::Not(HasSubstr("<slot:")));
    const auto slot = std::ranges::find(result.source_tokens, "<slot:1>");
    ASSERT_NE(slot, result.source_tokens.end());
    const auto number = static_cast<size_t>(slot - result.source_tokens.begin());
    const ByteRange range = result.source_ranges.at(number);
    EXPECT_EQ(range, (ByteRange{6, 6 + static_cast<int64_t>(std::string(piece).size())}));
  }
}

TEST(ApiTranslator, HeedsTermsOfAFileAndOfRequests) {
  const internal::testing::TemporaryFolder folder;
  const auto file = folder.path() / "terms.tsv";
  std::ofstream(file) << "mira\ttolu kebana\n";
  const Translator translator(kModel, {.terminology = file.string()});
  TranslationRequest one = request("dalan mira");
  one.terms = {{"dalan", "zo so"}};
  const TranslationResult found = translator.translate(std::vector{one}).at(0);
  EXPECT_THAT(found.translations.at(0).text, HasSubstr("tolu kebana"));
  EXPECT_THAT(found.translations.at(0).text, HasSubstr("zo so"));
  EXPECT_EQ(
      translator.translate_async(one).get().translations.at(0).text, found.translations[0].text);
  EXPECT_THROW(Translator(kModel, {.terminology = (folder.path() / "none").string()}), ModelError);
  EXPECT_THROW(Generator(kLanguageModel, {.terminology = file.string()}), OptionError);
}

TEST(ApiTranslator, CutsTextsWhereItIsAsked) {
  const Translator whole(kModel);
  const Translator cut(kModel, {.max_source_tokens = 3});
  const auto longer = cut.translate(std::vector{request("dalan mira dalan")});
  EXPECT_THAT(longer[0].notes, ElementsAre(HasSubstr("is cut to the 3 that")));
  const auto shorter = cut.translate(std::vector{request("dalan mira")});
  EXPECT_TRUE(shorter[0].notes.empty());
  EXPECT_EQ(longer[0].translations.at(0).text, whole.translate("dalan mira").text);
}

TEST(ApiTranslator, GivesTheSameWithLittleMemoryForLogits) {
  const auto all = requests(12);
  const auto wanted = Translator(kModel).translate(all);
  for (const int64_t bytes : {1, 300, 2'000}) {
    const auto found = Translator(kModel, {.logits_bytes = bytes}).translate(all);
    for (size_t i = 0; i < all.size(); ++i) {
      const Translation& a = found[i].translations.at(0);
      const Translation& b = wanted[i].translations.at(0);
      EXPECT_EQ(a.text, b.text);
      EXPECT_EQ(a.token_scores, b.token_scores);
    }
  }
}

TEST(ApiErrors, HaveClasses) {
  EXPECT_THROW(Translator("nowhere"), ModelError);
  EXPECT_THROW(Translator(""), ModelError);
  EXPECT_THROW(Translator(std::string(5000, 'x')), ModelError);
  EXPECT_THROW(Translator(std::vector<std::string>()), ModelError);
  EXPECT_THROW(Translator{kLanguageModel}, ModelError);
  EXPECT_THROW(Scorer{kLanguageModel}, ModelError);
  EXPECT_THROW(Generator{kModel}, ModelError);
}

/// What an exception of a class says.
template <class Exception, class Work>
std::string message_of(const Work& work) {
  try {
    work();
  } catch (const Exception& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(ApiErrors, AbsurdOptionsAreNamed) {
  const auto message = [](const RuntimeOptions& options) {
    const auto opened = [&](auto open) { return message_of<OptionError>([&] { open(); }); };
    const std::string one = opened([&] { Translator(kModel, options); });
    EXPECT_EQ(opened([&] { Scorer(kModel, options); }), one);
    EXPECT_EQ(opened([&] { Generator(kLanguageModel, options); }), one);
    return one;
  };
  EXPECT_EQ(message({.threads = -1}), "threads must be between 0 and 1024, but got -1");
  EXPECT_THAT(message({.threads = INT64_MAX}), HasSubstr("threads"));
  EXPECT_EQ(
      message({.compute = static_cast<ComputeType>(99)}),
      "compute must be between 0 and 4, but got 99");
  EXPECT_EQ(message({.batch_tokens = 0}), "batch_tokens must be at least 1, but got 0");
  EXPECT_EQ(message({.logits_bytes = 0}), "logits_bytes must be at least 1, but got 0");
  EXPECT_EQ(message({.max_source_tokens = -1}), "max_source_tokens must be at least 0, but got -1");
  EXPECT_EQ(
      message_of<OptionError>([] { Scorer(kModel, {.max_source_tokens = 3}); }),
      "max_source_tokens is for translating alone, but got 3");
  const Translator translator(kModel, {.batch_tokens = INT64_MAX});
  EXPECT_EQ(translator.translate(requests(3)).size(), 3U);
  EXPECT_THROW(translator.translate(requests(3), nullptr), OptionError);
}

TEST(ApiErrors, TimeoutsBelowZeroAreNamed) {
  const std::string wanted = "timeout_ms must be at least 0, but got -1";
  const std::chrono::milliseconds timeout(-1);
  const Translator translator(kModel);
  const TranslationRequest text{.text = "dalan", .timeout = timeout};
  EXPECT_EQ(message_of<OptionError>([&] { translator.translate(std::vector{text}); }), wanted);
  EXPECT_EQ(message_of<OptionError>([&] { translator.summarise({text}); }), wanted);
  EXPECT_EQ(message_of<OptionError>([&] { translator.translate_async(text); }), wanted);
  EXPECT_EQ(
      message_of<OptionError>([&] {
        Scorer(kModel).score({{"dalan", "mira", timeout}});
      }),
      wanted);
  EXPECT_EQ(
      message_of<OptionError>([&] { Generator(kLanguageModel).generate({.timeout = timeout}); }),
      wanted);
}

TEST(ApiErrors, TextsAndTheirTokensTogetherAreInvalid) {
  const Translator translator(kModel);
  const auto found = translator.translate(std::vector<TranslationRequest>{
      {.text = "mira", .tokens = std::vector<std::string>{"dalan"}},
      {.tokens = std::vector<std::string>{"dalan"}}});
  EXPECT_EQ(found[0].status, Status::kInvalid);
  EXPECT_THAT(found[0].error, HasSubstr("text and tokens"));
  EXPECT_EQ(found[1].translations.at(0).text, translator.translate("dalan").text);
}

TEST(ApiErrors, ShortlistsThatDoNotFitAreNamed) {
  const RuntimeOptions options{.shortlist = SEQCONV_SHORTLIST};
  const std::string wanted =
      "a shortlist is for translating alone, but got '" SEQCONV_SHORTLIST "'";
  EXPECT_EQ(message_of<OptionError>([&] { Scorer(kModel, options); }), wanted);
  EXPECT_EQ(message_of<OptionError>([&] { Generator(kLanguageModel, options); }), wanted);
  EXPECT_THAT(
      message_of<ModelError>([&] { Translator(kUnlimitedModel, options); }),
      HasSubstr("the shortlist is of another source vocabulary"));
  EXPECT_THAT(
      message_of<ModelError>([&] { Translator(kModel, {.shortlist = "nowhere.shortlist"}); }),
      HasSubstr("nowhere.shortlist"));
}

TEST(ApiErrors, AbsurdRequestsAreInvalid) {
  const Translator translator(kModel);
  const auto error = [&](auto change) {
    TranslationRequest own = request("dalan");
    change(own.search);
    const auto result = translator.translate(std::vector{own}).at(0);
    EXPECT_EQ(result.status, Status::kInvalid);
    return result.error;
  };
  EXPECT_THAT(error([](auto& search) { search.beam = INT64_MAX; }), HasSubstr("beam"));
  EXPECT_THAT(error([](auto& search) { search.n_best = 6; }), HasSubstr("n_best"));
  TranslationRequest drawn = request("dalan");
  drawn.sampling.emplace();
  drawn.search.n_best = 10'000'000;
  EXPECT_EQ(
      translator.translate(std::vector{drawn}).at(0).error,
      "n_best must be between 1 and 1000000, but got 10000000");
  EXPECT_THAT(
      error([](auto& search) { search.max_length_b = INT64_MAX; }), HasSubstr("max_length_b"));
  EXPECT_THAT(
      error([](auto& search) { search.length_penalty = INFINITY; }), HasSubstr("length_penalty"));
}

TEST(ApiErrors, NumbersBeyondTheirTypesAreInvalid) {
  const Translator translator(kModel);
  for (const double number : {std::nan(""), HUGE_VAL, -HUGE_VAL, 1e300, -1e300}) {
    std::vector<TranslationRequest> all(6, request("dalan"));
    all[0].search.length_penalty = number;
    all[1].search.max_length_a = number;
    all[2].search.unknown_penalty = number;
    all[3].sampling = SamplingOptions{.temperature = number};
    all[4].sampling = SamplingOptions{.top_p = number};
    all[5].search.min_length = int64_t{1} << 40;
    const auto results = translator.translate(all);
    for (size_t i = 0; i < all.size(); ++i) {
      if (i == 3 && number == 1e300)  // all tokens alike
        continue;
      EXPECT_EQ(results[i].status, Status::kInvalid) << i << ' ' << number;
      EXPECT_THAT(results[i].error, HasSubstr(" must be ")) << i;
    }
  }
}

TEST(ApiErrors, ContradictionsAreInvalidAndNameBoth) {
  const Translator translator(kModel);
  const auto error = [&](auto change) {
    TranslationRequest own = request("dalan");
    change(own);
    const auto result = translator.translate(std::vector{own}).at(0);
    EXPECT_EQ(result.status, Status::kInvalid);
    EXPECT_EQ(translator.translate_async(own).get().error, result.error);
    return result.error;
  };
  EXPECT_EQ(
      error([](auto& own) { own.search.min_length = 13; }),
      "min_length must be at most max_length_b (12) where max_length_a is 0, but got 13");
  EXPECT_THAT(
      error([](auto& own) {
        own.sampling = SamplingOptions{};
        own.search.beam = 7;
      }),
      HasSubstr("beam is that of a search, but translations are drawn"));
  EXPECT_THAT(
      error([](auto& own) {
        own.sampling = SamplingOptions{};
        own.search.stepwise_length_penalty = true;
      }),
      HasSubstr("stepwise_length_penalty is that of a search"));
}

TEST(ApiErrors, AResultWithoutAProbabilityHasFailed) {
  const Translator translator(kUnlimitedModel);
  std::vector<TranslationRequest> all(3, request("dalan"));
  for (TranslationRequest& own : all) {
    own.search.max_length_b = 500;
    own.search.no_repeat_ngram = 1;
  }
  all[0].search.min_length = 400;  // more words than there are
  all[1].search.min_length = 400;
  all[1].sampling = SamplingOptions{};
  const auto results = translator.translate(all);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(results[i].status, Status::kFailed);
    EXPECT_THAT(results[i].error, HasSubstr("no translation is left"));
    EXPECT_TRUE(results[i].translations.empty());
  }
  ASSERT_TRUE(results[2].ok()) << results[2].error;
  EXPECT_TRUE(std::isfinite(results[2].translations.at(0).score));
}

TEST(ApiDraws, OfEqualRequestsDifferUnlessTheySayTheirSeed) {
  const Translator translator(kModel, {.threads = 2});
  TranslationRequest own = request("dalan mira");
  own.sampling = SamplingOptions{.temperature = 2};
  const auto texts = [&] {
    std::vector<std::string> texts;
    for (const auto& result : translator.translate(std::vector(12, own)))
      texts.push_back(result.translations.at(0).text);
    return texts;
  };
  const std::vector<std::string> free = texts();
  EXPECT_GT(std::set(free.begin(), free.end()).size(), 6U);
  EXPECT_EQ(texts(), free);
  EXPECT_EQ(translator.translate_async(own).get().translations.at(0).text, free[0]);
  own.sampling->seed = 7;
  const std::vector<std::string> seeded = texts();
  EXPECT_EQ(seeded, std::vector(12, seeded[0]));
}

TEST(ApiTranslator, NeverGivesUnknownWordsThatAreBanned) {
  const Translator translator(kModel);
  std::vector<TranslationRequest> all(4, request("dalan mira"));
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].search.unknown_penalty = -30;
    all[i].search.ban_unknown = i % 2 == 1;
    if (i > 1)
      all[i].sampling = SamplingOptions{.seed = 3};
  }
  const auto results = translator.translate(all);
  for (size_t i = 0; i < all.size(); ++i) {
    ASSERT_TRUE(results[i].ok()) << results[i].error;
    const auto& tokens = results[i].translations.at(0).tokens;
    const auto unknown = std::count(tokens.begin(), tokens.end(), "<unk>");
    EXPECT_EQ(unknown == 0, i % 2 == 1) << i;
  }
}

TEST(ApiScorer, GivesLogProbabilities) {
  const Scorer scorer(kModel, {.threads = 2});
  const auto scores = scorer.score({{"dalan", "mira"}, {"mira dalan", "dalan"}, {"", ""}});
  ASSERT_EQ(scores.size(), 3U);
  for (const ScoreResult& score : scores) {
    EXPECT_TRUE(score.ok()) << score.error;
    EXPECT_LT(score.log_probability, 0);
  }
  EXPECT_EQ(scorer.score("dalan", "mira"), scores[0].log_probability);
  EXPECT_TRUE(scorer.score(std::vector<ScoreRequest>()).empty());
}

TEST(ApiScorer, AgreesWithTheTranslator) {
  const Translation found = Translator(kModel).translate("dalan mira");
  EXPECT_NEAR(Scorer(kModel).score("dalan mira", found.text), found.log_probability, 1e-4);
}

TEST(ApiScorer, AFailingRequestLeavesTheOthers) {
  const Scorer scorer(kModel);
  std::string longer;
  for (int i = 0; i < 48; ++i)
    longer += "mira ";
  const auto scores = scorer.score(
      {{"dalan", "mira"},
       {"\xff", "mira"},
       {"dalan", "mira \xc3"},
       {longer, "mira"},
       {"dalan", longer},
       {"dalan zzz", "mira"}});
  EXPECT_TRUE(scores[0].ok());
  EXPECT_THAT(scores[1].error, HasSubstr("the source must be UTF-8"));
  EXPECT_THAT(scores[2].error, HasSubstr("the target must be UTF-8"));
  EXPECT_THAT(
      scores[3].error, HasSubstr("the source has 49 tokens, </s> counted, more than the model"));
  EXPECT_THAT(scores[4].error, HasSubstr("the target has 49 tokens"));
  for (size_t i = 1; i < 5; ++i) {
    EXPECT_EQ(scores[i].status, Status::kInvalid);
    EXPECT_TRUE(std::isnan(scores[i].log_probability));
  }
  EXPECT_TRUE(scores[5].ok());
  EXPECT_THAT(scores[5].notes, ElementsAre(HasSubstr("1 of the 2 symbols")));
  EXPECT_THROW(scorer.score("dalan", "\xff"), RequestError);
}

TEST(ApiGenerator, TellsTextAsItComes) {
  const Generator generator(kLanguageModel);
  std::string heard;
  const GenerationRequest request{.prompt = "dalan", .length = 30};
  const GenerationResult result = generator.generate(request, [&](std::string_view more) {
    heard += more;
    return true;
  });
  EXPECT_TRUE(result.ok()) << result.error;
  EXPECT_EQ(heard, result.text);
  EXPECT_EQ(result.tokens.size(), 30U);
  EXPECT_EQ(result.token_scores.size(), 30U);
  EXPECT_LT(result.log_probability, 0);
  EXPECT_EQ(generator.generate(request).text, result.text);
  EXPECT_EQ(generator.generate("dalan").substr(0, heard.size()), heard);
}

TEST(ApiGenerator, EndsWhenItsHearerHasEnough) {
  const Generator generator(kLanguageModel);
  size_t calls = 0;
  const GenerationResult result = generator.generate({.length = 30}, [&](std::string_view) {
    ++calls;
    return false;
  });
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(calls, 1U);
  EXPECT_LT(result.tokens.size(), 30U);
}

TEST(ApiGenerator, FaultsAreTheRequests) {
  const Generator generator(kLanguageModel);
  const auto error = [&](const GenerationRequest& request) {
    const GenerationResult result = generator.generate(request);
    EXPECT_EQ(result.status, Status::kInvalid);
    EXPECT_EQ(result.text, "");
    return result.error;
  };
  EXPECT_THAT(error({.prompt = "a\xff"}), HasSubstr("not at byte 1"));
  EXPECT_THAT(error({.length = 0}), HasSubstr("length must be at least"));
  EXPECT_THAT(error({.prompt = "dalan", .length = INT64_MAX}), HasSubstr("were to follow"));
  EXPECT_THAT(error({.sampling = {.top_p = 0}}), HasSubstr("sampling.top_p must be"));
  EXPECT_THROW(generator.generate("\xff"), RequestError);
}

}  // namespace
}  // namespace seqconv
