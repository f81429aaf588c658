#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "serve/models.h"
#include "serve/translate_call.h"

namespace seqconv::internal {

/// A text of a call: its document and the model for its language.
struct JobText {
  std::unique_ptr<Document> document;
  Models::Opened model;
};

/// What comes of a call: `texts` in their order, with other translations of each.
struct JobOutcome {
  std::vector<std::string> texts;
  std::vector<std::vector<std::string>> alternatives;
};

/// Sentences of a call's texts, translated beside everybody's; ends once.
class TranslationJob : public std::enable_shared_from_this<TranslationJob> {
 public:
  /// `post` runs work in a thread that models may be closed in.
  TranslationJob(
      std::vector<JobText> texts,
      int64_t alternatives,
      std::chrono::milliseconds timeout,
      std::function<void(std::function<void()>)> post);

  /// Calls `done` once, in a thread of `post`, when all is translated; then the models are free.
  /// CallError 429 when the queue of a model is full.
  void begin(std::function<void()> done);
  void cancel() { cancel_.cancel(); }

  /// After the end. CallError for what failed.
  JobOutcome outcome() const;

 private:
  void hear(size_t text, size_t sentence, TranslationResult result);
  void hear_last();

  std::vector<JobText> texts_;
  std::vector<std::vector<TranslationResult>> results_;
  const int64_t alternatives_;
  const std::chrono::milliseconds timeout_;
  const std::function<void(std::function<void()>)> post_;
  std::function<void()> done_;
  CancelToken cancel_;
  std::atomic<int64_t> left_{1};
};

}  // namespace seqconv::internal
