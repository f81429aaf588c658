#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "base/random.h"
#include "base/special_ids.h"
#include "search/backend.h"
#include "search/table_decoder.h"

/// Backends without a model, whose numbers are drawn from a hash of the
/// sentence: rows know nothing of each other.
namespace seqconv::internal::testing {

/// Counts calls that are under way at a time.
class Meeting {
 public:
  /// Calls wait until so many of them are there; 0: for nobody.
  explicit Meeting(int64_t wanted = 0) : wanted_(wanted) {}

  void enter() {
    std::unique_lock lock(mutex_);
    largest_ = std::max(largest_, ++inside_);
    arrived_.notify_all();
    const auto all = [&] { return largest_ >= wanted_; };
    EXPECT_TRUE(arrived_.wait_for(lock, std::chrono::seconds(20), all))
        << "only " << largest_ << " calls at a time";
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    --inside_;
  }
  int64_t largest() const { return largest_; }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  int64_t wanted_;
  int64_t inside_ = 0;
  int64_t largest_ = 0;
};

/// Sentences that fail, by a word of theirs.
struct FailingWords {
  int32_t broken = -1;      ///< an Error that names the whole sentence
  int32_t improbable = -1;  ///< no probability
};

inline int64_t hash_of(std::span<const int32_t> ids) {
  uint64_t key = 1;
  for (const int32_t id : ids)
    key = mix_words(key, static_cast<uint64_t>(id));
  return static_cast<int64_t>(key >> 1);
}

inline bool has_word(std::span<const int32_t> ids, int32_t word) {
  return std::find(ids.begin(), ids.end(), word) != ids.end();
}

class TableTranslation : public TranslationBackend {
 public:
  TableTranslation(int64_t vocabulary, FailingWords words, int64_t meet)
      : table_{.vocabulary = vocabulary}, words_(words), meeting_(meet) {}

  std::unique_ptr<StepDecoder> start(
      const std::vector<std::vector<int32_t>>& sources) const override {
    meeting_.enter();
    largest_batch_ = std::max<size_t>(largest_batch_, sources.size());
    std::vector<int64_t> sentences;
    for (const auto& source : sources)
      sentences.push_back(hash_of(source));
    meeting_.leave();
    check(sources);
    return std::make_unique<TableDecoder>(table_, sentences);
  }

  std::vector<double> score(
      const std::vector<std::vector<int32_t>>& sources,
      const std::vector<std::vector<int32_t>>& targets) const override {
    meeting_.enter();
    meeting_.leave();
    check(sources);
    std::vector<double> scores;
    for (size_t i = 0; i < sources.size(); ++i)
      scores.push_back(
          1.0 / static_cast<double>(1 + hash_of(sources[i]) % 1000 + hash_of(targets[i]) % 77));
    return scores;
  }

  /// Token i looks at source token i alone, the last ones at </s>.
  std::vector<SourceShares> source_shares(
      const std::vector<int32_t>& source,
      const std::vector<std::vector<int32_t>>& targets) const override {
    check({source});
    std::vector<SourceShares> all;
    for (const std::vector<int32_t>& target : targets) {
      const size_t S = source.size() + 1, T = target.size() + 1;
      SourceShares& own = all.emplace_back(SourceShares{static_cast<int64_t>(S), {}});
      own.values.resize(S * T);
      for (size_t t = 0; t < T; ++t)
        own.values[t * S + std::min(t, S - 1)] = 1;
    }
    return all;
  }

  PositionLimits limits() const override { return {0, 6}; }
  std::string name() const override { return "tables"; }
  const Meeting& meeting() const { return meeting_; }
  /// Most sentences that were started together, by one thread.
  size_t largest_batch() const { return largest_batch_; }

 private:
  void check(const std::vector<std::vector<int32_t>>& sources) const {
    for (const auto& source : sources) {
      if (has_word(source, words_.broken))
        fail("broken by ", source.size(), " words from ", source.front());
      if (has_word(source, words_.improbable))
        throw NoProbability(concat("no probability of ", source.size()));
    }
  }

  RandomTable table_;
  FailingWords words_;
  mutable Meeting meeting_;
  mutable std::atomic<size_t> largest_batch_{0};
};

class TableLanguage : public LanguageBackend {
 public:
  TableLanguage(FailingWords words, int64_t meet) : words_(words), meeting_(meet) {}

  std::unique_ptr<TextReader> start() const override { return nullptr; }

  std::vector<std::vector<float>> score(
      const std::vector<std::span<const int32_t>>& pieces) const override {
    meeting_.enter();
    meeting_.leave();
    std::vector<std::vector<float>> scores;
    for (const auto piece : pieces) {
      if (has_word(piece, words_.broken))
        fail("broken by ", piece.size(), " words from ", piece.front());
      scores.emplace_back();
      for (size_t i = 1; i < piece.size(); ++i)
        scores.back().push_back(
            piece[i] == words_.improbable
                ? -std::numeric_limits<float>::infinity()
                : -1.0F / static_cast<float>(1 + hash_of(piece.first(i + 1)) % 1000));
    }
    return scores;
  }

  int64_t max_tokens() const override { return 1 << 20; }
  std::string name() const override { return "tables"; }
  const Meeting& meeting() const { return meeting_; }

 private:
  FailingWords words_;
  mutable Meeting meeting_;
};

}  // namespace seqconv::internal::testing
