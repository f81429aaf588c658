#include "serve/translation_job.h"

#include <algorithm>
#include <utility>

#include "serve/answers.h"

namespace seqconv::internal {
namespace {

using Clock = std::chrono::steady_clock;

// Sentences of a job that wait or are translated at a time, for each thread of its models. Four
// times as many translate a document 5 % faster, and others wait four times as long beside it.
constexpr size_t kTogether = 32;

// The least that alternatives are searched for with, where a model's own beam is too narrow.
constexpr int64_t kOthersBeam = 5;

TranslationResult failure(Status status, const char* error) {
  TranslationResult result;
  result.status = status;
  result.error = error;
  return result;
}

}  // namespace

void fail_as(const TranslationResult& result) {
  switch (result.status) {
    case Status::kInvalid:
    case Status::kFailed:
      throw CallError(400, result.error);
    case Status::kCancelled:
      throw CallError(503, "The server is closing", 1);
    case Status::kTimedOut:
      throw CallError(503, "The translation took too long", 1);
    case Status::kOutOfMemory:
    case Status::kOk:
      break;
  }
  throw CallError(503, "There is not memory enough for this text", 1);
}

TranslationJob::TranslationJob(
    std::vector<JobText> texts,
    const JobWishes& wishes,
    std::chrono::milliseconds timeout,
    JobHooks hooks)
    : texts_(std::move(texts)),
      wishes_(wishes),
      end_(timeout.count() > 0 ? Clock::now() + timeout : Clock::time_point::max()),
      hooks_(std::move(hooks)),
      told_(texts_.size()) {
  ModelInfo info;
  for (size_t i = 0; i < texts_.size(); ++i) {
    const size_t count = texts_[i].document->sentences().size();
    results_.emplace_back(count);
    const auto& model = texts_[i].model;
    if (model && (i == 0 || model != texts_[i - 1].model))
      info = model->translator->info();
    beams_.push_back(info.search.beam.value_or(1));
    together_ = std::max(together_, kTogether * static_cast<size_t>(info.threads));
    told_[i].is_there.resize(count);
    for (size_t s = 0; s < count; ++s)
      places_.push_back({i, s});
  }
  left_ += sentences();
}

void TranslationJob::begin(std::function<void()> done) {
  done_ = std::move(done);
  if (hooks_.part)
    for (size_t i = 0; i < texts_.size(); ++i)
      if (texts_[i].document->sentences().empty())
        hooks_.part(i, texts_[i].document->with({}));
  for (size_t i = 0; i < std::min(together_, places_.size()); ++i)
    ask_next();
  hear_last();
}

TranslationRequest TranslationJob::request_for(const Place& place) const {
  const Document& document = *texts_[place.text].document;
  TranslationRequest request;
  request.text = document.sentences()[place.sentence];
  if (end_ != Clock::time_point::max())
    request.timeout = std::max(
        std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now()),
        std::chrono::milliseconds(1));
  if (document.wants_alignments() || wishes_.alignments)
    request.alignments = Alignments::kPairs;
  if (wishes_.terms)
    for (const TermInText& term : wishes_.terms->find(request.text))
      request.terms.push_back(
          {request.text.substr(term.begin, term.end - term.begin), std::string(term.target)});
  request.search.n_best = 1;
  if (wishes_.alternatives > 0 && !has_narrow_beam(place))
    request.search.n_best = wishes_.alternatives + 1;
  return request;
}

bool TranslationJob::has_narrow_beam(const Place& place) const {
  return beams_[place.text] < wishes_.alternatives + 1;
}

/// Asks for the next sentence that nobody has asked for, or for the one after it if it fails.
void TranslationJob::ask_next() {
  while (true) {
    const size_t next = next_++;
    if (next >= places_.size() || ask(places_[next]))
      return;
  }
}

bool TranslationJob::ask(const Place& place) {
  try {
    texts_[place.text].model->translator->translate_async(
        request_for(place),
        [self = shared_from_this(), place](TranslationResult result) {
          if (self->wishes_.alternatives > 0 && self->has_narrow_beam(place) && result.ok())
            return self->ask_others(place, std::move(result));
          self->ask_next();
          self->hear(place, std::move(result));
        },
        cancel_);
    return true;
  } catch (const std::exception&) {  // memory, or a thread that cannot be started
    hear(place, failure(Status::kOutOfMemory, ""));
    return false;
  }
}

/// Adds other translations to a sentence's own one.
void TranslationJob::ask_others(const Place& place, TranslationResult own) {
  const auto first = std::make_shared<TranslationResult>(std::move(own));
  try {
    TranslationRequest request = request_for(place);
    request.search.n_best = wishes_.alternatives + 1;
    request.search.beam = std::max(wishes_.alternatives + 1, kOthersBeam);
    texts_[place.text].model->translator->translate_async(
        std::move(request),
        [self = shared_from_this(), place, first](TranslationResult others) {
          const std::string text = first->translations.at(0).text;
          for (auto& other : others.translations)
            if (other.text != text)
              first->translations.push_back(std::move(other));
          if (!others.ok())
            *first = std::move(others);
          self->ask_next();
          self->hear(place, std::move(*first));
        },
        cancel_);
  } catch (const std::exception&) {
    ask_next();
    hear(place, failure(Status::kOutOfMemory, ""));
  }
}

void TranslationJob::hear(const Place& place, TranslationResult result) {
  results_[place.text][place.sentence] = std::move(result);
  if (hooks_.part) {
    const std::lock_guard lock(mutex_);
    told_[place.text].is_there[place.sentence] = true;
    try {
      tell_parts(place.text);
    } catch (const std::exception&) {  // memory: the end has all of it, or fails
    }
  }
  hear_last();
}

/// Tells what can be told of a text; tags have their places when all of it is there.
void TranslationJob::tell_parts(size_t text) {
  Told& told = told_[text];
  const Document& document = *texts_[text].document;
  const auto& results = results_[text];
  while (told.count < results.size() && told.is_there[told.count] && results[told.count].ok()) {
    if (document.format() == DocumentFormat::kText) {
      std::string part = document.part(told.count, results[told.count], told.text);
      told.text += part;
      hooks_.part(text, std::move(part));
    }
    ++told.count;
  }
  if (told.count == results.size() && document.format() == DocumentFormat::kHtml)
    hooks_.part(text, document.with(results));
}

/// The last one that calls this ends the job. Models are let go of in a thread of `post`, as a
/// result's own thread cannot close its model.
void TranslationJob::hear_last() {
  if (--left_ == 0)
    hooks_.post([self = shared_from_this()] {
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
    if (wishes_.alignments)
      outcome.alignments.push_back(document.aligned(results_[i]));
    auto& notes = outcome.notes.emplace_back();
    for (const TranslationResult& result : results_[i])
      notes.insert(notes.end(), result.notes.begin(), result.notes.end());
    auto& others = outcome.alternatives.emplace_back();
    for (int64_t number = 1; number <= wishes_.alternatives; ++number) {
      std::string other = document.with(results_[i], static_cast<size_t>(number));
      if (other != outcome.texts.back() && std::ranges::find(others, other) == others.end())
        others.push_back(std::move(other));
    }
  }
  return outcome;
}

}  // namespace seqconv::internal
