#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "models.h"
#include "support/temporary_folder.h"
#include "support/threads.h"

/// What may happen while requests are under way: threads, cancelling,
/// destroying, exceptions of the caller, forks, folders that change.
namespace seqconv {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

TEST(ApiThreads, ServeManyCallersAtATime) {
  const Translator translator(kModel, {.threads = 2});
  const Scorer scorer(kModel, {.threads = 2});
  const Generator generator(kLanguageModel);
  const auto all = requests(20);
  const auto wanted = translator.translate(all);
  const double score = scorer.score("dalan", "mira");
  const std::string text = generator.generate("dalan");
  std::vector<std::jthread> callers;
  for (int caller = 0; caller < 4; ++caller)
    callers.emplace_back([&] {
      for (int round = 0; round < 3; ++round) {
        std::vector<std::future<TranslationResult>> futures;
        for (const TranslationRequest& own : all)
          futures.push_back(translator.translate_async(own));
        const auto found = translator.translate(all);
        for (size_t i = 0; i < all.size(); ++i) {
          const std::string& same = wanted[i].translations.at(0).text;
          EXPECT_EQ(found[i].translations.at(0).text, same);
          EXPECT_EQ(futures[i].get().translations.at(0).text, same);
        }
        EXPECT_EQ(scorer.score("dalan", "mira"), score);
        EXPECT_EQ(generator.generate("dalan"), text);
      }
    });
}

TEST(ApiThreads, OneCancelsWhileOthersCall) {
  const Translator translator(kModel, {.threads = 2, .batch_tokens = 30});
  const auto all = requests(20);
  const auto wanted = translator.translate(all);
  const auto expect_sound = [&](size_t i, const TranslationResult& found) {
    if (found.ok())
      EXPECT_EQ(found.translations.at(0).text, wanted[i].translations[0].text);
    else
      EXPECT_EQ(found.status, Status::kCancelled) << found.error;
  };
  for (int round = 0; round < 20; ++round) {
    const CancelToken cancel;
    std::jthread canceller([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(300 * round));
      cancel.cancel();
    });
    std::jthread other([&] {
      std::vector<std::future<TranslationResult>> futures;
      for (const TranslationRequest& own : all)
        futures.push_back(translator.translate_async(own, cancel));
      for (size_t i = 0; i < all.size(); ++i)
        expect_sound(i, futures[i].get());
    });
    translator.translate(all, expect_sound, cancel);
  }
}

TEST(ApiCancel, BeforeTheBeginningNothingIsDone) {
  const Translator translator(kModel, {.threads = 2});
  const CancelToken cancel;
  cancel.cancel();
  for (const TranslationResult& result : translator.translate(requests(20), cancel)) {
    EXPECT_EQ(result.status, Status::kCancelled);
    EXPECT_NE(result.error, "");
  }
  for (const TranslationRequest& own : requests(3))
    EXPECT_EQ(translator.translate_async(own, cancel).get().status, Status::kCancelled);
  EXPECT_EQ(Scorer(kModel).score({{"dalan", "mira"}}, cancel)[0].status, Status::kCancelled);
  const auto generated = Generator(kLanguageModel).generate({.length = 5}, {}, cancel);
  EXPECT_EQ(generated.status, Status::kCancelled);
  EXPECT_TRUE(generated.tokens.empty());
  EXPECT_TRUE(translator.translate_async(request("dalan")).get().ok());
}

TEST(ApiCancel, AfterTheEndChangesNothing) {
  const Translator translator(kModel);
  CancelToken cancel;
  CancelToken moved = std::move(cancel);
  auto future = translator.translate_async(request("dalan"), moved);
  future.wait();
  cancel.cancel();
  EXPECT_TRUE(moved.is_cancelled());
  EXPECT_TRUE(future.get().ok());
}

TEST(ApiCancel, EndsWhatIsUnderWay) {
  const Translator translator(kUnlimitedModel, {.threads = 2});
  const CancelToken cancel;
  auto future = translator.translate_async(endless_request(), cancel);
  EXPECT_EQ(future.wait_for(30ms), std::future_status::timeout);
  std::jthread canceller([&] {
    std::this_thread::sleep_for(30ms);
    cancel.cancel();
  });
  const auto results = translator.translate({request("dalan"), endless_request()}, cancel);
  EXPECT_EQ(results[1].status, Status::kCancelled);
  EXPECT_EQ(future.get().status, Status::kCancelled);
}

/// Of a batch whose longest takes some 30 times as many steps.
TEST(ApiResults, LeaveABatchAsEachEnds) {
  const Translator translator(kUnlimitedModel, {.threads = 1});
  std::vector<TranslationRequest> both = {request(""), request("dalan")};
  for (int i = 0; i < 60; ++i)
    both[0].text += "dalan mira ";
  for (TranslationRequest& one : both) {
    one.search.beam = 1;
    one.search.max_length_a = 100;
    one.search.min_length = 1'000'000;
  }
  const CancelToken cancel;
  std::vector<Status> found(2, Status::kFailed);
  translator.translate(
      both,
      [&](size_t i, const TranslationResult& result) {
        found[i] = result.status;
        if (i == 1)
          cancel.cancel();
      },
      cancel);
  EXPECT_EQ(found, (std::vector{Status::kCancelled, Status::kOk}));
}

TEST(ApiThreads, AShortRequestDoesNotWaitBehindALongOneWhileOneIsFree) {
  const Translator translator(kUnlimitedModel, {.threads = 2});
  for (int round = 0; round < 10; ++round) {
    const CancelToken cancel;
    auto endless = translator.translate_async(endless_request(), cancel);
    auto shorter = translator.translate_async(request("dalan"));
    EXPECT_EQ(shorter.wait_for(30s), std::future_status::ready) << round;
    cancel.cancel();
    EXPECT_EQ(endless.get().status, Status::kCancelled);
  }
}

TEST(ApiThreads, HelpARequestThatIsAlone) {
  TranslationRequest wide = request("");
  for (int i = 0; i < 1000; ++i)
    wide.text += "dalan mira ";
  wide.search.max_length_a = 0;
  const int64_t before = internal::testing::threads_of_this_process();
  const TranslationResult wanted =
      Translator(kUnlimitedModel, {.threads = 1}).translate({wide}).at(0);
  ASSERT_TRUE(internal::testing::leaves_threads(before));
  const Translator translator(kUnlimitedModel, {.threads = 3});
  for (int round = 0; round < 10; ++round) {
    const TranslationResult found = translator.translate_async(wide).get();
    EXPECT_EQ(internal::testing::threads_of_this_process(), before + 3);
    ASSERT_EQ(found.translations.size(), wanted.translations.size());
    for (size_t i = 0; i < found.translations.size(); ++i) {
      EXPECT_EQ(found.translations[i].text, wanted.translations[i].text);
      EXPECT_EQ(found.translations[i].score, wanted.translations[i].score);
    }
  }
}

TEST(ApiThreads, AreThereForOthersWhileTheyHelp) {
  const Translator translator(kUnlimitedModel, {.threads = 3});
  const CancelToken cancel;
  auto endless = translator.translate_async(endless_request(), cancel);
  for (int round = 0; round < 10; ++round) {
    std::this_thread::sleep_for(5ms);
    auto shorter = translator.translate_async(request("dalan"));
    EXPECT_EQ(shorter.wait_for(30s), std::future_status::ready) << round;
  }
  cancel.cancel();
  EXPECT_EQ(endless.get().status, Status::kCancelled);
}

TEST(ApiCancel, IsToldAtOnceThoughTheBatchGoesOn) {
  const Translator translator(kUnlimitedModel, {.threads = 1});
  const CancelToken first, others;
  // While it is under way the two behind it come together.
  auto running = translator.translate_async(endless_request(), first);
  auto cancelled = translator.translate_async(endless_request(), others);
  const CancelToken last;
  auto neighbour = translator.translate_async(endless_request(), last);
  std::this_thread::sleep_for(20ms);
  first.cancel();
  EXPECT_EQ(running.get().status, Status::kCancelled);
  std::this_thread::sleep_for(20ms);
  others.cancel();
  EXPECT_EQ(cancelled.get().status, Status::kCancelled);
  EXPECT_EQ(neighbour.wait_for(0ms), std::future_status::timeout);
  last.cancel();
  EXPECT_EQ(neighbour.get().status, Status::kCancelled);
}

TEST(ApiCancel, EndsATextThatGoesOn) {
  const Generator generator(kLanguageModel);
  const CancelToken cancel;
  size_t heard = 0;
  const auto result = generator.generate(
      {.length = 1'000'000'000},
      [&](std::string_view) {
        if (++heard == 5)
          cancel.cancel();
        return true;
      },
      cancel);
  EXPECT_EQ(result.status, Status::kCancelled);
  EXPECT_NE(result.text, "");
}

TEST(ApiTranslator, MayBeDestroyedWhileWorkIsUnderWay) {
  for (int round = 0; round < 20; ++round) {
    std::vector<std::future<TranslationResult>> futures;
    {
      const Translator translator(kUnlimitedModel, {.threads = 2});
      for (const TranslationRequest& own : requests(30))
        futures.push_back(translator.translate_async(own));
      futures.push_back(translator.translate_async(endless_request()));
      std::this_thread::sleep_for(std::chrono::microseconds(100 * round));
    }
    for (auto& future : futures) {
      const TranslationResult result = future.get();
      EXPECT_TRUE(result.ok() || result.status == Status::kCancelled);
    }
    EXPECT_TRUE(futures.size() == 31);
  }
}

TEST(ApiTranslator, MayBeMovedWithWorkUnderWay) {
  Translator first(kUnlimitedModel, {.threads = 2});
  auto future = first.translate_async(request("dalan"));
  Translator second(std::move(first));
  first = Translator(kModel);
  auto endless = second.translate_async(endless_request());
  second = std::move(first);
  EXPECT_TRUE(future.get().status != Status::kFailed);
  EXPECT_EQ(endless.get().status, Status::kCancelled);
  EXPECT_TRUE(second.translate_async(request("dalan")).get().ok());
}

TEST(ApiCallbacks, WhatTheyThrowReachesTheCallerAsItIs) {
  struct Own {
    int number;
  };
  const Translator translator(kModel, {.threads = 3, .batch_tokens = 8});
  for (const size_t last : {0U, 3U, 30U}) {
    size_t calls = 0;
    try {
      translator.translate(requests(40), [&](size_t, TranslationResult) {
        if (calls++ == last)
          throw Own{7};
      });
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Own& own) {
      EXPECT_EQ(own.number, 7);
    }
    EXPECT_EQ(calls, last + 1);
  }
  const Generator generator(kLanguageModel);
  EXPECT_THROW(
      generator.generate({.length = 30}, [](std::string_view) -> bool { throw Own{7}; }), Own);
}

TEST(ApiCallbacks, MayCallTheirTranslator) {
  const Translator translator(kModel, {.threads = 2});
  translator.translate(requests(9), [&](size_t, TranslationResult) {
    EXPECT_TRUE(translator.translate_async(request("dalan")).get().ok());
    EXPECT_EQ(translator.translate(requests(3)).size(), 3U);
  });
}

/// The status of a child process that does `work` and exits with its answer.
template <class Work>
int status_of_child(const Work& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    ::_exit(work() ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

TEST(ApiFork, AChildMayUseWhatItsParentMade) {
  auto translator = std::make_unique<Translator>(kModel, RuntimeOptions{.threads = 2});
  const auto translated = [&] {
    return translator->translate_async(request("dalan mira")).get().translations.at(0).text;
  };
  const std::string wanted = translated();
  for (int round = 0; round < 30; ++round) {
    const int status = status_of_child([&] {
      const bool same = translated() == wanted && translator->translate(requests(5)).size() == 5 &&
          status_of_child([&] { return translated() == wanted; }) == 0;
      translator.reset();
      return same;
    });
    ASSERT_EQ(status, 0);
    ASSERT_EQ(translated(), wanted);
  }
}

TEST(ApiFork, AChildMayDestroyWhatItHasNotUsed) {
  auto translator = std::make_unique<Translator>(kModel);
  EXPECT_TRUE(translator->translate_async(request("dalan")).get().ok());
  EXPECT_EQ(
      status_of_child([&] {
        translator.reset();
        return true;
      }),
      0);
}

class ApiFolder : public ::testing::Test {
 protected:
  ApiFolder() { fs::copy(kModel, model_, fs::copy_options::recursive); }

  internal::testing::TemporaryFolder folder_;
  fs::path model_ = folder_.path() / "model";
};

TEST_F(ApiFolder, IsKeptThoughItIsReplacedOrRemoved) {
  const Translator translator(model_.string());
  const auto all = requests(6);
  const auto wanted = translator.translate(all);
  const auto expect_the_same = [&] {
    const auto found = translator.translate(all);
    for (size_t i = 0; i < all.size(); ++i)
      EXPECT_EQ(
          found[i].translations.at(0).token_scores, wanted[i].translations.at(0).token_scores);
  };
  const fs::path other = folder_.path() / "other.safetensors";
  fs::copy(fs::path(kUnlimitedModel) / "model.safetensors", other);
  fs::rename(other, model_ / "model.safetensors");
  expect_the_same();
  EXPECT_THROW(Translator(model_.string()), ModelError);
  fs::rename(model_, folder_.path() / "old");
  fs::copy(kUnlimitedModel, model_, fs::copy_options::recursive);
  expect_the_same();
  fs::remove_all(folder_.path() / "old");
  expect_the_same();
}

TEST_F(ApiFolder, OfWhichAFileIsCutWhileItIsOpenEndsTheProcess) {
  const int status = status_of_child([&] {
    std::signal(SIGBUS, SIG_DFL);  // a sanitizer has its own
    const Translator translator(model_.string());
    fs::resize_file(model_ / "model.safetensors", 0);
    translator.translate("dalan mira");
    return true;
  });
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGBUS);
}

}  // namespace
}  // namespace seqconv
