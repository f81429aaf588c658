#include "serve/translation_job.h"

#include <algorithm>
#include <utility>

namespace seqconv::internal {
namespace {

[[noreturn]] void fail_as(const TranslationResult& result) {
  switch (result.status) {
    case Status::kInvalid:
    case Status::kFailed:
      throw CallError(400, result.error);
    case Status::kCancelled:
      throw CallError(503, "The server is closing");
    case Status::kTimedOut:
      throw CallError(503, "The translation took too long");
    default:
      throw CallError(503, "There is not memory enough for this text");
  }
}

}  // namespace

TranslationJob::TranslationJob(
    std::vector<JobText> texts,
    int64_t alternatives,
    std::chrono::milliseconds timeout,
    std::function<void(std::function<void()>)> post)
    : texts_(std::move(texts)),
      alternatives_(alternatives),
      timeout_(timeout),
      post_(std::move(post)) {
  for (const JobText& text : texts_)
    results_.emplace_back(text.document->sentences().size());
}

void TranslationJob::begin(std::function<void()> done) {
  done_ = std::move(done);
  const auto self = shared_from_this();
  try {
    for (size_t i = 0; i < texts_.size(); ++i) {
      const Document& document = *texts_[i].document;
      for (size_t s = 0; s < document.sentences().size(); ++s) {
        TranslationRequest request;
        request.text = document.sentences()[s];
        request.timeout = timeout_;
        if (document.wants_alignments())
          request.alignments = Alignments::kPairs;
        if (alternatives_ > 0) {
          request.search.n_best = alternatives_ + 1;
          request.search.beam = std::max<int64_t>(alternatives_ + 1, 5);
        }
        ++left_;
        try {
          texts_[i].model->translate_async(
              request,
              [self, i, s](TranslationResult result) { self->hear(i, s, std::move(result)); },
              cancel_);
        } catch (...) {
          --left_;  // not the last: begin() holds one itself
          throw;
        }
      }
    }
  } catch (...) {
    cancel_.cancel();
    done_ = nullptr;
    hear_last();
    throw;
  }
  hear_last();
}

void TranslationJob::hear(size_t text, size_t sentence, TranslationResult result) {
  results_[text][sentence] = std::move(result);
  hear_last();
}

/// The last one that calls this ends the job. Models are let go of in a thread of `post`, as a
/// result's own thread cannot close its model.
void TranslationJob::hear_last() {
  if (--left_ == 0)
    post_([self = shared_from_this()] {
      for (JobText& text : self->texts_)
        text.model.reset();
      if (const auto done = std::exchange(self->done_, nullptr))
        done();
    });
}

JobOutcome TranslationJob::outcome() const {
  JobOutcome outcome;
  for (size_t i = 0; i < texts_.size(); ++i) {
    for (const TranslationResult& result : results_[i])
      if (!result.ok())
        fail_as(result);
    const Document& document = *texts_[i].document;
    outcome.texts.push_back(document.with(results_[i]));
    auto& others = outcome.alternatives.emplace_back();
    for (int64_t number = 1; number <= alternatives_; ++number) {
      std::string other = document.with(results_[i], static_cast<size_t>(number));
      if (other != outcome.texts.back() && std::ranges::find(others, other) == others.end())
        others.push_back(std::move(other));
    }
  }
  return outcome;
}

}  // namespace seqconv::internal
