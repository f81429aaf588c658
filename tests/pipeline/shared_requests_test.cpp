#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <set>
#include <thread>
#include <utility>

#include "base/error.h"
#include "pipeline/perplexity.h"
#include "pipeline/scorer.h"
#include "pipeline/token_batches.h"
#include "pipeline/translator.h"
#include "support/errors.h"
#include "support/temporary_folder.h"
#include "support/threads.h"
#include "table_backend.h"

// Requests whose work is shared among threads: the same results, notes and
// errors for any number of them.
namespace seqconv::internal {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using testing::error_of;
using testing::FailingWords;
using ::testing::HasSubstr;
using testing::leaves_threads;
using testing::TableLanguage;
using testing::TableTranslation;
using testing::threads_of_this_process;

constexpr int64_t kWorkers[] = {1, 2, 5};

TEST(TokenBatches, HoldEveryItemOnceWhateverTheWorkers) {
  const std::vector<int64_t> lengths = {9, 2, 40, 7, 7, 1, 30, 12, 5, 5, 3};
  for (const int64_t workers : {1, 2, 3, 5, 11, 100})
    for (const int64_t most : {1, 10, 50, 1000}) {
      std::vector<int> seen(lengths.size());
      for (const auto& group : group_by_tokens(lengths, most, workers)) {
        for (const size_t item : group)
          ++seen[item];
        EXPECT_TRUE(group.size() == 1 || std::ssize(group) * lengths[group.front()] <= most);
      }
      EXPECT_THAT(seen, Each(1));
    }
}

TEST(TokenBatches, GiveEveryWorkerSomethingToDo) {
  const std::vector<int64_t> alike(24, 10);
  EXPECT_EQ(group_by_tokens(alike, 4096, 1).size(), 1u);
  for (const int64_t workers : {2, 3, 4, 6, 8, 24})
    EXPECT_EQ(std::ssize(group_by_tokens(alike, 4096, workers)), workers);
  EXPECT_EQ(group_by_tokens(alike, 4096, 100).size(), 24u);
  // Five batches would leave one of two workers waiting for the other.
  EXPECT_EQ(group_by_tokens(alike, 50, 1).size(), 5u);
  EXPECT_EQ(group_by_tokens(alike, 50, 2).size(), 6u);
}

TEST(TokenBatches, LeaveNoWorkerWaitingLongWhateverBatchesCost) {
  std::vector<int64_t> lengths;
  for (uint64_t i = 0; i < 3000; ++i)
    lengths.push_back(5 + random_word(1, i) % 26);
  for (const int64_t workers : {2, 3, 4}) {
    const int64_t most = most_items_of(std::ssize(lengths), workers);
    // The next batch is for whoever is free; each costs by its items, as short lines do whose
    // translations are long.
    std::vector<int64_t> done(static_cast<size_t>(workers));
    for (const auto& group : group_by_tokens(lengths, 4096, workers, most)) {
      EXPECT_LE(std::ssize(group), most);
      *std::ranges::min_element(done) += std::ssize(group);
    }
    EXPECT_LT(std::ranges::max(done) * workers, 3000 * 1.04) << workers;
  }
  EXPECT_EQ(most_items_of(3000, 1), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(most_items_of(3000, 2), 188);
  EXPECT_EQ(most_items_of(200, 2), 50);
  EXPECT_EQ(most_items_of(100'000, 2), 256);
  EXPECT_EQ(most_items_of(1, 2), std::numeric_limits<int64_t>::max());
}

/// Words that texts are made of; ids are 4 and up.
const std::string kWords = "eins zwei drei vier fünf sechs sieben acht kaputt";

std::vector<std::string> random_lines(size_t count, size_t words) {
  const std::vector<std::string> names = {
      "eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht"};
  std::vector<std::string> lines;
  for (size_t i = 0; i < count; ++i) {
    std::string line;
    const uint32_t length = random_word(7, i) % 12;
    for (uint32_t word = 0; word < length; ++word)
      line += names[random_word(i, word) % words] + " ";
    lines.push_back(line);
  }
  return lines;
}

class SharedTranslation : public ::testing::Test {
 protected:
  SharedTranslation()
      : text_(TranslationText::create(
            {.subword = Subword::kNone},
            {folder_.write("train", kWords + "\n")},
            {folder_.path() / "train"})) {}

  int32_t id(const std::string& word) const { return text_.source->encode(word).at(0); }

  TranslationSystem system(FailingWords words = {}, int64_t meet = 0) {
    backend_ = std::make_shared<TableTranslation>(text_.target->vocabulary().size(), words, meet);
    TranslationSystem system;
    system.text = text_;
    system.backend = backend_;
    return system;
  }

  /// All that translating gives, as text.
  static std::string translate(
      const TranslationSystem& system,
      const std::vector<TranslationInput>& requests,
      int64_t workers,
      int64_t batch_tokens = 40) {
    TranslatorOptions options;
    options.search = {.beam = 3, .n_best = 2, .max_length_b = 9};
    options.batch_tokens = batch_tokens;
    options.workers = workers;
    std::string all;
    for (const TranslationOutcome& result : Translator(system, options).translate(requests)) {
      all += concat("error: ", result.error, "\n");
      for (const Translation& translation : result.translations) {
        for (const std::string& token : translation.tokens)
          all += token + " ";
        all += translation.text;
        for (const float score : translation.token_scores)
          all += concat(" ", std::bit_cast<uint32_t>(score));
        all += concat(" ", std::bit_cast<uint64_t>(translation.score), "\n");
      }
      for (const std::string& note : result.notes)
        all += note + "\n";
    }
    return all;
  }

  /// Lines, empty ones among them, some with a prefix or a search of their own.
  static std::vector<TranslationInput> requests(size_t count = 150) {
    std::vector<TranslationInput> requests;
    for (const std::string& line : random_lines(count, 8)) {
      requests.push_back({{.text = line}});
      if (requests.size() % 7 == 0)
        requests.back().target_prefix = "acht unbekannt";
      if (requests.size() % 5 == 0)
        requests.back().search = {.beam = 2, .max_length_b = 3};
      if (requests.size() % 6 == 0) {
        requests.back().search.beam.reset();  // draws have none
        requests.back().sampling = {.top_k = 4, .seed = requests.size()};
      }
    }
    return requests;
  }

  testing::TemporaryFolder folder_;
  TranslationText text_;
  std::shared_ptr<const TableTranslation> backend_;
};

TEST_F(SharedTranslation, GivesTheSameBytesForAnyNumberOfWorkers) {
  const std::string wanted = translate(system(), requests(), 1);
  EXPECT_THAT(wanted, HasSubstr("may be cut"));
  EXPECT_THAT(wanted, HasSubstr("<unk> stands"));
  for (const int64_t workers : kWorkers)
    for (const int64_t batch_tokens : {1, 40, 4096})
      EXPECT_TRUE(translate(system(), requests(), workers, batch_tokens) == wanted)
          << workers << " workers, batches of " << batch_tokens;
}

TEST_F(SharedTranslation, HasAsManyBatchesAtATimeAsWorkers) {
  for (const int64_t workers : kWorkers) {
    const int64_t threads = threads_of_this_process();
    const TranslationSystem waits = system({}, workers);
    translate(waits, requests(), workers, 4096);
    EXPECT_EQ(backend_->meeting().largest(), workers);
    EXPECT_TRUE(leaves_threads(threads));
  }
}

TEST_F(SharedTranslation, BatchesCountTheHypothesesOfTerms) {
  std::vector<TranslationInput> requests(40, {{.text = "eins zwei drei"}});
  translate(system(), requests, 1, 160);
  EXPECT_EQ(backend_->largest_batch(), 40u);
  for (TranslationInput& request : requests)
    request.terms = {{"eins", "acht acht acht"}};  // 3 hypotheses more than the beam of 3
  translate(system(), requests, 1, 160);
  EXPECT_EQ(backend_->largest_batch(), 20u);
}

TEST_F(SharedTranslation, SeesTheFirstTokensOfALongSource) {
  TranslationSystem cut = system();
  cut.text.max_source_tokens = 3;
  const Translator translator(cut, {});
  const auto found = translator.translate(
      {{{.text = "eins zwei drei vier"}},
       {.ids = cut.text.source->encode("eins zwei drei")},
       {{.text = "eins zwei"}}});
  for (const TranslationOutcome& result : found)
    EXPECT_EQ(result.translations.at(0).tokens, found[2].translations.at(0).tokens);
  EXPECT_THAT(
      found[0].notes, Contains("a line of 5 tokens is cut to the model's 3 (max_source_tokens)"));
  EXPECT_TRUE(found[0].source_cut && found[1].source_cut);
  EXPECT_FALSE(found[2].source_cut);
  const auto scores = score_requests(
      cut,
      {{"eins zwei drei vier", "vier drei zwei eins"},
       {"eins zwei", "vier drei zwei eins"},
       {"eins zwei", "vier drei"}},
      {});
  EXPECT_EQ(scores[0].log_probability, scores[1].log_probability);
  EXPECT_NE(scores[1].log_probability, scores[2].log_probability);
  EXPECT_THAT(
      scores[0].notes,
      ElementsAre("the source of 5 tokens is cut to the model's 3 (max_source_tokens)"));
}

/// Requests in lists of ten.
class Lists : public TranslationLists {
 public:
  explicit Lists(const std::vector<TranslationInput>& all) : all_(all) {}
  bool read(std::vector<TranslationInput>& requests) override {
    EXPECT_TRUE(requests.empty());
    const auto first = all_.begin() + std::exchange(at_, at_ + kSize);
    if (first == all_.end())
      return false;
    requests.assign(first, first + kSize);
    return true;
  }
  void write(const std::vector<TranslationOutcome>& results) override {
    EXPECT_EQ(std::ssize(results), kSize);
    for (const TranslationOutcome& result : results)
      tokens.push_back(result.translations.at(0).tokens);
  }
  std::vector<std::vector<std::string>> tokens;

 private:
  static constexpr int64_t kSize = 10;
  const std::vector<TranslationInput>& all_;
  int64_t at_ = 0;
};

TEST_F(SharedTranslation, ListsGiveWhatTheyGiveTogether) {
  const auto all = requests();
  for (const int64_t workers : kWorkers) {
    TranslatorOptions options{.batch_tokens = 40, .workers = workers};
    options.search.max_length_b = 9;
    const Translator translator(system(), options);
    Lists lists(all);
    translator.translate(lists);
    std::vector<std::vector<std::string>> wanted;
    for (const TranslationOutcome& result : translator.translate(all))
      wanted.push_back(result.translations.at(0).tokens);
    EXPECT_EQ(lists.tokens, wanted);
  }
}

TEST_F(SharedTranslation, OneThatHasNoProbabilityFailsAlone) {
  auto with_bad = requests();
  for (size_t i = 3; i < with_bad.size(); i += 40)
    with_bad[i].text += " kaputt";
  const FailingWords words{.improbable = id("kaputt")};
  const std::string wanted = translate(system(words), with_bad, 1, 1);
  EXPECT_THAT(wanted, HasSubstr("error: no probability of"));
  for (const int64_t workers : kWorkers)
    EXPECT_TRUE(translate(system(words), with_bad, workers) == wanted) << workers << " workers";
}

TEST_F(SharedTranslation, TellsEveryResultOnceAsItIsReturned) {
  for (const int64_t workers : kWorkers) {
    TranslatorOptions options{.batch_tokens = 40, .workers = workers};
    options.search.max_length_b = 9;
    auto all = requests();
    all[5].text = "\xff";
    std::vector<std::string> heard(all.size(), "nothing");
    std::atomic<int> at_a_time = 0;
    const auto results =
        Translator(system(), options).translate(all, {.done = [&](size_t i, const auto& result) {
                                                  EXPECT_EQ(++at_a_time, 1);
                                                  EXPECT_EQ(heard.at(i), "nothing");
                                                  heard[i] = result.error;
                                                  --at_a_time;
                                                }});
    for (size_t i = 0; i < all.size(); ++i)
      EXPECT_EQ(heard[i], results[i].error);
    EXPECT_EQ(results[5].status, Status::kInvalid);
  }
}

TEST_F(SharedTranslation, StopsBetweenTwoSteps) {
  for (const int64_t workers : kWorkers)
    for (const int most : {0, 1, 30, 300}) {
      TranslatorOptions options{.batch_tokens = 40, .workers = workers};
      options.search.max_length_b = 9;
      std::atomic<int> asked = 0;
      size_t stopped = 0;
      for (const TranslationOutcome& result :
           Translator(system(), options).translate(requests(), {.stop = [&] {
                                                     return ++asked > most;
                                                   }})) {
        EXPECT_EQ(result.error.empty(), !result.translations.empty());
        stopped += result.status == Status::kCancelled;
      }
      EXPECT_GT(stopped, 0u);
      EXPECT_EQ(stopped == requests().size(), most <= 1) << stopped;
    }
}

TEST_F(SharedTranslation, AnErrorOfTheBackendReachesTheCaller) {
  auto with_bad = requests();
  for (size_t i = 3; i < with_bad.size(); i += 40)
    with_bad[i].text += " kaputt";
  const FailingWords words{.broken = id("kaputt")};
  const auto error = [&](int64_t workers) {
    return error_of([&] { translate(system(words), with_bad, workers); });
  };
  EXPECT_THAT(error(1), HasSubstr("broken by"));
  for (const int64_t workers : kWorkers)
    EXPECT_EQ(error(workers), error(1));
}

TEST_F(SharedTranslation, PairsAreScoredTheSameByAnyNumberOfWorkers) {
  std::vector<std::vector<int32_t>> sources, targets;
  for (const std::string& line : random_lines(90, 8)) {
    sources.push_back(text_.source->encode(line));
    targets.push_back(text_.target->encode(line));
    std::reverse(targets.back().begin(), targets.back().end());
  }
  const auto scores = [&](const TranslationSystem& of, int64_t workers) {
    return score_pairs(*of.backend, sources, targets, 40, workers);
  };
  const auto wanted = scores(system(), 1);
  for (const int64_t workers : kWorkers)
    EXPECT_EQ(scores(system({}, workers), workers), wanted);
  sources[20].push_back(id("kaputt"));
  sources[50].push_back(id("kaputt"));
  const TranslationSystem broken = system({.broken = id("kaputt")});
  const std::string error = error_of([&] { scores(broken, 1); });
  for (const int64_t workers : kWorkers)
    EXPECT_EQ(error_of([&] { scores(broken, workers); }), error);
}

TEST_F(SharedTranslation, PairsFailAlone) {
  std::vector<ScoreRequest> pairs;
  for (const std::string& line : random_lines(90, 8))
    pairs.push_back({line, line.substr(0, line.find(' ') + 1)});
  pairs[7].source = "eins \xff";
  pairs[8].target = "eins zwei drei vier acht acht";
  pairs[9].target = "acht unbekannt";
  const auto wanted = score_requests(system(), pairs, {.batch_tokens = 1});
  EXPECT_THAT(wanted[7].error, HasSubstr("UTF-8, but is not at byte 5"));
  EXPECT_THAT(wanted[8].error, HasSubstr("the target has 7 tokens"));
  EXPECT_THAT(wanted[9].notes.at(0), HasSubstr("1 of the 2 symbols"));
  for (const int64_t workers : kWorkers) {
    const auto found = score_requests(system(), pairs, {40, workers});
    for (size_t i = 0; i < pairs.size(); ++i) {
      EXPECT_EQ(found[i].error, wanted[i].error);
      EXPECT_EQ(found[i].error.empty(), i != 7 && i != 8);
      EXPECT_TRUE(
          std::isnan(wanted[i].log_probability)
              ? std::isnan(found[i].log_probability)
              : found[i].log_probability == wanted[i].log_probability);
    }
  }
  for (const auto& result : score_requests(system(), pairs, {}, [] { return true; }))
    EXPECT_EQ(result.status, Status::kCancelled);
}

class SharedPerplexity : public ::testing::Test {
 protected:
  SharedPerplexity()
      : text_(LanguageText::create(
            {.subword = Subword::kNone}, {folder_.write("train", kWords + "\n")})) {}

  TextCost measure(
      SampleKind kind,
      int64_t workers,
      const std::vector<std::string>& lines,
      FailingWords words = {},
      int64_t meet = 0) const {
    LanguageSystem system;
    system.text = text_;
    system.stream = {.samples = kind, .block_tokens = 16};
    system.backend = std::make_shared<TableLanguage>(words, meet);
    PerplexityMeter meter(system, {.batch_tokens = 40, .workers = workers});
    for (size_t i = 0; i < lines.size(); ++i)
      meter.add_line(lines[i], concat("text:", i + 1));
    return meter.finish();
  }

  testing::TemporaryFolder folder_;
  LanguageText text_;
};

TEST_F(SharedPerplexity, IsTheSameNumberForAnyNumberOfWorkers) {
  const auto lines = random_lines(300, 8);
  for (const SampleKind kind :
       {SampleKind::kBlocks, SampleKind::kDocumentBlocks, SampleKind::kLines}) {
    const TextCost wanted = measure(kind, 1, lines);
    EXPECT_GT(wanted.bits, 1);
    for (const int64_t workers : kWorkers) {
      const TextCost found = measure(kind, workers, lines, {}, workers);
      EXPECT_EQ(found.bits, wanted.bits) << workers << " workers";
      EXPECT_EQ(found.tokens, wanted.tokens);
    }
  }
}

TEST_F(SharedPerplexity, NamesTheFirstLineThatFails) {
  auto lines = random_lines(300, 8);
  lines[200] += "kaputt";
  lines[203] += "kaputt eins zwei drei vier fünf sechs sieben acht";
  const int32_t bad = text_.text->encode("kaputt").at(0);
  for (const int64_t workers : kWorkers) {
    EXPECT_THAT(
        error_of([&] { measure(SampleKind::kLines, workers, lines, {.improbable = bad}); }),
        HasSubstr("text:201: the model gives the text here no finite"));
    EXPECT_THAT(
        error_of([&] { measure(SampleKind::kLines, workers, lines, {.broken = bad}); }),
        HasSubstr("broken by"));
  }
}

}  // namespace
}  // namespace seqconv::internal
