#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "seqconv/api/runtime.h"
#include "support/temporary_folder.h"

/// The library through its header, on the folders that are in the repository.
namespace seqconv::api {
namespace {

namespace fs = std::filesystem;

const std::string kModel = SEQCONV_FOLDERS "/translation_2";
const std::string kLanguageModel = SEQCONV_FOLDERS "/language_1";

TranslationRequest request(std::string text) {
  TranslationRequest request{.text = std::move(text)};
  request.search.max_length_b = 12;
  return request;
}

std::vector<TranslationRequest> requests(size_t count) {
  std::vector<TranslationRequest> all;
  for (size_t i = 0; i < count; ++i) {
    std::string text;
    for (size_t word = 0; word < i % 7; ++word)
      text += "tolu urat ";
    all.push_back(request(text));
    if (i % 5 == 0)
      all.back().sampling = SamplingSettings{.seed = i};
  }
  return all;
}

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

TEST(ApiTranslator, AFailingRequestLeavesTheOthers) {
  const Translator translator(kModel);
  auto all = requests(4);
  all[1].text = "\xff";
  all[2].search.beam = 0;
  const auto results = translator.translate(all);
  EXPECT_TRUE(results[0].ok());
  EXPECT_NE(results[1].error.find("UTF-8"), std::string::npos);
  EXPECT_NE(results[2].error.find("beam"), std::string::npos);
  EXPECT_TRUE(results[3].ok());
  EXPECT_FALSE(translator.translate_async(all[1]).get().ok());
  EXPECT_THROW(translator.translate("\xff"), Error);
}

TEST(ApiTranslator, StopsWhenItIsAskedTo) {
  const Translator translator(kModel, {.threads = 2});
  CancelToken cancel;
  cancel.cancel();
  for (const TranslationResult& result :
       translator.translate(requests(20), cancel)) {
    if (result.translations.empty())
      EXPECT_TRUE(result.cancelled);
  }
  EXPECT_TRUE(
      translator.translate_async(request("tolu"), cancel).get().cancelled);
  EXPECT_TRUE(translator.translate_async(request("tolu")).get().ok());
}

TEST(ApiTranslator, MayBeDestroyedWhileWorkIsUnderWay) {
  for (int round = 0; round < 20; ++round) {
    std::vector<std::future<TranslationResult>> futures;
    {
      const Translator translator(kModel, {.threads = 2});
      for (const TranslationRequest& own : requests(30))
        futures.push_back(translator.translate_async(own));
      std::this_thread::sleep_for(std::chrono::microseconds(100 * round));
    }
    for (auto& future : futures) {
      const TranslationResult result = future.get();
      EXPECT_TRUE(result.ok() || result.cancelled) << result.error;
    }
  }
}

TEST(ApiTranslator, GoesOnInAChildProcess) {
  const Translator translator(kModel, {.threads = 2});
  const std::string wanted = translator.translate_async(request("tolu urat"))
                                 .get()
                                 .translations.at(0)
                                 .text;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const bool same = translator.translate("tolu urat").text.size() > 0 &&
        translator.translate_async(request("tolu urat"))
                .get()
                .translations.at(0)
                .text == wanted;
    ::_exit(same ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(ApiTranslator, KeepsAFolderThatIsReplaced) {
  testing::TemporaryFolder folder;
  const fs::path model = folder.path() / "model";
  fs::copy(kModel, model, fs::copy_options::recursive);
  const Translator translator(model.string());
  const std::string wanted = translator.translate("tolu urat").text;
  fs::remove_all(model);
  EXPECT_EQ(translator.translate("tolu urat").text, wanted);
}

TEST(ApiErrors, HaveClasses) {
  EXPECT_THROW(Translator("nowhere"), ModelError);
  EXPECT_THROW(Translator{kLanguageModel}, ModelError);
  EXPECT_THROW(Translator(kModel, {.threads = -1}), OptionError);
  EXPECT_THROW(Translator(kModel, {.batch_tokens = 0}), OptionError);
  EXPECT_THROW(Generator{kModel}, ModelError);
  const Generator generator(kLanguageModel);
  EXPECT_THROW(generator.generate({.length = 0}), OptionError);
}

TEST(ApiScorer, GivesLogProbabilities) {
  const Scorer scorer(kModel);
  const auto scores = scorer.score({{"tolu", "urat"}, {"urat tolu", "tolu"}});
  ASSERT_EQ(scores.size(), 2U);
  EXPECT_LT(scores[0], 0);
  EXPECT_EQ(scorer.score({{"tolu", "urat"}})[0], scores[0]);
}

TEST(ApiGenerator, TellsTextAsItComes) {
  const Generator generator(kLanguageModel);
  std::string heard;
  const std::string text =
      generator.generate({.length = 30}, [&](std::string_view more) {
        heard += more;
        return true;
      });
  EXPECT_EQ(heard, text);
  size_t calls = 0;
  generator.generate({.length = 30}, [&](std::string_view) {
    ++calls;
    return false;
  });
  EXPECT_LE(calls, 2U);  // what was held back comes at the end
}

}  // namespace
}  // namespace seqconv::api
