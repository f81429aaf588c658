#include <gtest/gtest.h>

#include "failing_memory.h"
#include "models.h"

/// Memory that runs out: results and exceptions say so, and nothing else
/// happens.
namespace seqconv {
namespace {

using internal::testing::FailingMemory;

/// Does `work` again and again, each time with another allocation that fails,
/// or all from there on, until all is well. What `prepare` makes has its
/// memory.
template <class Prepare, class Work>
void expect_any_may_fail(const Prepare& prepare, const Work& work, size_t smallest = 0) {
  for (const bool and_all_after : {false, true}) {
    int64_t refused = 0;
    bool failed = true;
    for (int64_t number = 0; failed; number += 1 + number / 16, ++refused) {
      auto prepared = prepare();
      const FailingMemory memory(
          {.number = number, .and_all_after = and_all_after, .smallest = smallest});
      try {
        work(prepared);
      } catch (const OutOfMemory&) {}
      failed = memory.has_failed();
    }
    EXPECT_GT(refused, 1);
  }
}

/// The only fault of a result is that there was no memory.
void expect_sound(const TranslationResult& result, const std::string& wanted) {
  if (result.ok())
    EXPECT_EQ(result.translations.at(0).text, wanted);
  else
    EXPECT_EQ(result.status, Status::kOutOfMemory) << result.error;
}

// The JSON library needs a little memory to destroy what it has read.
TEST(ApiMemory, MayRunOutWhileAModelIsOpened) {
  const auto nothing = [] { return 0; };
  const size_t smallest = 4096;
  expect_any_may_fail(
      nothing, [](int) { Translator{kModel}; }, smallest);
  expect_any_may_fail(
      nothing, [](int) { Generator{kLanguageModel}; }, smallest);
}

void expect_any_may_fail_of(
    const Translator& translator, Alignments alignments = Alignments::kNone) {
  auto all = requests(8);
  for (TranslationRequest& request : all)
    request.alignments = alignments;
  const auto wanted = translator.translate(all);
  expect_any_may_fail(
      [&] { return all; },
      [&](const auto& own) {
        const auto found = translator.translate(own);
        for (size_t i = 0; i < all.size(); ++i) {
          expect_sound(found[i], wanted[i].translations[0].text);
          if (found[i].ok()) {
            EXPECT_EQ(found[i].source_ranges, wanted[i].source_ranges);
            EXPECT_EQ(found[i].translations[0].alignment, wanted[i].translations[0].alignment);
          }
        }
      });
}

TEST(ApiMemory, MayRunOutWhileTextsAreTranslated) {
  expect_any_may_fail_of(Translator(kModel, {.threads = 2, .batch_tokens = 12}));
}

TEST(ApiMemory, MayRunOutWhileTranslationsAreAligned) {
  expect_any_may_fail_of(
      Translator(kModel, {.threads = 2, .batch_tokens = 12}), Alignments::kShares);
}

TEST(ApiMemory, MayRunOutWhileWordsOfAShortlistAreTaken) {
  expect_any_may_fail_of(
      Translator(kModel, {.threads = 2, .batch_tokens = 12, .shortlist = SEQCONV_SHORTLIST}));
}

struct Waiting {
  std::vector<TranslationRequest> requests;
  std::vector<std::future<TranslationResult>> futures;
};

Waiting waiting(const std::vector<TranslationRequest>& all) {
  return {all, std::vector<std::future<TranslationResult>>(all.size())};
}

void translate_async(const Translator& translator, Waiting& own) {
  for (size_t i = 0; i < own.requests.size(); ++i)
    try {
      own.futures[i] = translator.translate_async(std::move(own.requests[i]));
    } catch (const OutOfMemory&) {}
  for (auto& future : own.futures)
    if (future.valid())
      future.wait();
}

TEST(ApiMemory, MayRunOutWhileRequestsWait) {
  const Translator translator(kModel, {.threads = 2});
  const auto all = requests(5);
  const auto wanted = translator.translate(all);
  const auto prepare = [&] { return waiting(all); };
  expect_any_may_fail(prepare, [&](Waiting& own) {
    translate_async(translator, own);
    for (size_t i = 0; i < all.size(); ++i)
      if (own.futures[i].valid())
        expect_sound(own.futures[i].get(), wanted[i].translations[0].text);
  });
}

TEST(ApiMemory, MayRunOutBeforeTheFirstThreadBegins) {
  const auto all = requests(2);
  const auto wanted = Translator(kModel).translate(all)[1].translations.at(0).text;
  int64_t refused = 0;
  for (int64_t number = 0; number < 30; ++number) {
    const Translator translator(kModel, {.threads = 2});
    Waiting own = waiting(all);
    {
      const FailingMemory memory({.number = number});
      translate_async(translator, own);
      refused += memory.has_failed();
    }
    if (own.futures[1].valid())
      expect_sound(own.futures[1].get(), wanted);
    expect_sound(translator.translate_async(all[1]).get(), wanted);
  }
  EXPECT_GT(refused, 1);
}

TEST(ApiMemory, MayRunOutForScorers) {
  const Scorer scorer(kModel, {.threads = 2});
  const std::vector<ScoreRequest> all = {{"dalan", "mira"}, {"mira", ""}};
  const double score = scorer.score("dalan", "mira");
  expect_any_may_fail(
      [&] { return all; },
      [&](const auto& own) {
        for (const auto& found : scorer.score(own))
          EXPECT_TRUE(found.ok() || found.status == Status::kOutOfMemory);
        EXPECT_EQ(scorer.score("dalan", "mira"), score);
      });
}

TEST(ApiMemory, MayRunOutForGenerators) {
  const Generator generator(kLanguageModel);
  const GenerationRequest request{.length = 9};
  const std::string text = generator.generate(request).text;
  expect_any_may_fail(
      [&] { return request; },
      [&](const auto& own) {
        const GenerationResult found = generator.generate(own);
        if (found.ok())
          EXPECT_EQ(found.text, text);
        else
          EXPECT_EQ(found.status, Status::kOutOfMemory) << found.error;
      });
}

TEST(ApiMemory, OneRequestThatWantsTooMuchFailsAlone) {
  const Translator translator(kModel, {.threads = 2});
  auto all = requests(12);
  all[4].search.beam = 40'000;
  const FailingMemory memory({.largest = 1'000'000});
  const auto found = translator.translate(all);
  EXPECT_TRUE(memory.has_failed());
  for (size_t i = 0; i < all.size(); ++i)
    EXPECT_EQ(found[i].status, i == 4 ? Status::kOutOfMemory : Status::kOk)
        << i << ": " << found[i].error;
  EXPECT_EQ(translator.translate_async(all[4]).get().status, Status::kOutOfMemory);
}

TEST(ApiMemory, RequestsThatWantTooMuchTogetherGoOneByOne) {
  const Translator translator(kModel, {.threads = 1, .batch_tokens = 100'000});
  const std::vector<TranslationRequest> all(700, request("dalan mira"));
  const FailingMemory memory({.largest = 300'000});
  const auto found = translator.translate(all);
  EXPECT_TRUE(memory.has_failed());
  for (const TranslationResult& result : found)
    EXPECT_TRUE(result.ok()) << result.error;
}

}  // namespace
}  // namespace seqconv
