#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "serve/models.h"
#include "text/markup/document.h"
#include "text/terminology.h"

namespace seqconv::internal {

/// A text of a call: its document and the model for its language, none where it has no sentence.
struct JobText {
  std::unique_ptr<Document> document;
  Models::Opened model;
};

/// The outcome of a call: `texts` in their order, with other translations of each.
struct JobOutcome {
  std::vector<std::string> texts;
  std::vector<std::vector<std::string>> alternatives;
  std::vector<std::vector<std::string>> notes;         ///< on each text
  std::vector<std::vector<AlignedRanges>> alignments;  ///< words that belong together, as bytes
};

/// Says what is wanted beside translations, which stay the same: those of a model whose own beam
/// is too narrow for the alternatives are searched for once more, by a wider one.
struct JobWishes {
  int64_t alternatives = 0;
  bool alignments = false;
  std::shared_ptr<const Terminology> terms{};  ///< of the call, beside a model's own; null: none
};

struct JobHooks {
  /// Runs work in a thread that models may be closed in.
  std::function<void(std::function<void()>)> post;
  /// Told, where given, the parts of each text's translation in their order, as they are there:
  /// by some thread, one at a time.
  std::function<void(size_t text, std::string part)> part{};
};

/// CallError for a result that is not ok.
[[noreturn]] void fail_as(const TranslationResult& result);

/// Sentences of a call's texts, translated beside everybody's; ends once. Some dozens are
/// asked for at a time, so that a long document leaves room for others.
class TranslationJob : public std::enable_shared_from_this<TranslationJob> {
 public:
  TranslationJob(
      std::vector<JobText> texts,
      const JobWishes& wishes,
      std::chrono::milliseconds timeout,
      JobHooks hooks);

  int64_t sentences() const { return static_cast<int64_t>(places_.size()); }

  /// Calls `done` once, in a thread of `post`, when all is translated; then the models are free.
  void begin(std::function<void()> done);
  /// Ends it soon: what has no result by then is cancelled.
  void cancel() { cancel_.cancel(); }

  /// After the end. CallError for what failed.
  JobOutcome outcome() const;

 private:
  struct Place {
    size_t text = 0;
    size_t sentence = 0;  // of the text
  };

  TranslationRequest request_for(const Place& place) const;
  bool has_narrow_beam(const Place& place) const;
  void ask_next();
  bool ask(const Place& place);
  void ask_others(const Place& place, TranslationResult own);
  void hear(const Place& place, TranslationResult result);
  void tell_parts(size_t text);
  void hear_last();

  std::vector<JobText> texts_;
  std::vector<Place> places_;
  std::vector<std::vector<TranslationResult>> results_;
  std::vector<int64_t> beams_;  // of each text's model
  size_t together_ = 1;         // sentences that are asked for at a time
  const JobWishes wishes_;
  const std::chrono::steady_clock::time_point end_;  // its longest: never
  const JobHooks hooks_;
  std::function<void()> done_;
  CancelToken cancel_;
  std::atomic<size_t> next_{0};
  std::atomic<int64_t> left_{1};

  // Parts that were told.
  struct Told {
    std::vector<bool> is_there;
    size_t count = 0;
    std::string text;
  };
  std::mutex mutex_;
  std::vector<Told> told_;
};

}  // namespace seqconv::internal
