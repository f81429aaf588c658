#include <deque>

#include "base/random.h"
#include "runtime/api/arguments.h"
#include "runtime/api/model.h"
#include "text/documents.h"

/// The calls of requests: those that wait, and those that return at once.
namespace seqconv::internal {
namespace {

constexpr uint64_t kStandardSeed = 1;  // the program's as well

/// A kind of calls.
struct Kind {
  const char* call;
  seqconv_task task;
  bool is_summary = false;
};
constexpr Kind kTranslate = {"seqconv_translate", SEQCONV_TASK_TRANSLATION};
constexpr Kind kSummarise = {"seqconv_summarise", SEQCONV_TASK_TRANSLATION, true};
constexpr Kind kScore = {"seqconv_score", SEQCONV_TASK_TRANSLATION};
constexpr Kind kGenerate = {"seqconv_generate", SEQCONV_TASK_LANGUAGE_MODEL};

/// The struct that a request is made of, as far as its caller knows it.
seqconv_translation_request read_given(const seqconv_translation_request* given) {
  return read_struct(given, SEQCONV_TRANSLATION_REQUEST_INIT, "seqconv_translation_request");
}
seqconv_score_request read_given(const seqconv_score_request* given) {
  return read_struct(given, SEQCONV_SCORE_REQUEST_INIT, "seqconv_score_request");
}
seqconv_generation_request read_given(const seqconv_generation_request* given) {
  return read_struct(given, SEQCONV_GENERATION_REQUEST_INIT, "seqconv_generation_request");
}

struct WayBack {
  Listener listener;
  CancelState cancel;
};

/// `number`: of the request in its call, from 0.
Request make_request(
    const Kind& kind, const seqconv_translation_request& given, int64_t number, WayBack back) {
  TranslationInput input{read_request(given)};
  input.streams = read_flag(given.stream, "stream");
  if (input.sampling && !input.sampling->seed)
    input.sampling->seed = mix_words(kStandardSeed, static_cast<uint64_t>(number) + 1);
  if (kind.is_summary) {
    if (input.alignments != Alignments::kNone)
      fail_option("alignments must be none where documents are summarised");
    input.text = document_line({input.text});
  }
  Request request(std::move(input), std::move(back.listener), std::move(back.cancel));
  request.is_summary = kind.is_summary;
  request.streams = given.stream != 0;
  return request;
}
Request make_request(
    const Kind& /*kind*/, const seqconv_score_request& given, int64_t /*number*/, WayBack back) {
  return {read_request(given), std::move(back.listener), std::move(back.cancel)};
}
Request make_request(
    const Kind& /*kind*/,
    const seqconv_generation_request& given,
    int64_t /*number*/,
    WayBack back) {
  Request request(read_request(given), std::move(back.listener), std::move(back.cancel));
  request.streams = read_flag(given.stream, "stream");
  return request;
}

seqconv_call read_call(const seqconv_call* call) {
  return read_struct(call, SEQCONV_CALL_INIT, "seqconv_call");
}

CancelState cancel_of(const seqconv_call& call) {
  return call.cancel == nullptr ? nullptr : call.cancel->state;
}

/// Places of results: those that are filled are freed where the call fails.
class Places {
 public:
  Places(seqconv_result** results, int64_t count) : results_(results), count_(count) {
    for (int64_t i = 0; results != nullptr && i < count; ++i)
      results[i] = nullptr;
  }
  ~Places() {
    for (int64_t i = 0; results_ != nullptr && i < count_; ++i)
      seqconv_result_free(std::exchange(results_[i], nullptr));
  }
  Places(const Places&) = delete;
  Places& operator=(const Places&) = delete;

  seqconv_result** at(int64_t i) const { return results_ == nullptr ? nullptr : results_ + i; }
  void keep() { results_ = nullptr; }

 private:
  seqconv_result** results_;
  int64_t count_;
};

template <class Given>
seqconv_status wait_for(
    const Kind& kind,
    const seqconv_model* model,
    const Given* requests,
    int64_t count,
    const seqconv_call* call,
    seqconv_result** results) {
  return guarded(SEQCONV_ERROR, [&] {
    const seqconv_call own = read_call(call);
    required(model, "model").require(kind.task, kind.call);
    if (count < 0 || (requests == nullptr && count > 0))
      fail_option("requests must be given, at least 0, but got ", count);
    if (own.heard == nullptr && results == nullptr && count > 0)
      fail_option(kind.call, " must have results or call->heard, but got neither");
    if (own.queue != nullptr)
      fail_option("a queue is for calls that return at once, not for ", kind.call);
    Places places(own.heard == nullptr ? results : nullptr, count);
    std::deque<Request> all;  // no block that grows with them
    std::vector<Request*> asked;
    const auto* next = reinterpret_cast<const std::byte*>(requests);
    for (int64_t i = 0; i < count; ++i, next += requests->size) {
      const Given given = read_given(reinterpret_cast<const Given*>(next));
      all.push_back(make_request(kind, given, i, {{own, i, places.at(i)}, cancel_of(own)}));
      asked.push_back(&all.back());
    }
    answer(model->answerer(), asked);
    places.keep();
  });
}

template <class Given>
seqconv_status begin(
    const Kind& kind, const seqconv_model* model, const Given* request, const seqconv_call* call) {
  return guarded(SEQCONV_ERROR, [&] {
    const seqconv_call own = read_call(call);
    required(model, "model").require(kind.task, kind.call);
    if (own.heard == nullptr && own.queue == nullptr)
      fail_option(kind.call, "_async must have call->heard or call->queue, but got neither");
    if (own.heard == nullptr)
      own.queue->events->require_own_process();
    RequestQueue::Requests one;
    const Given given = read_given(&required(request, "request"));
    one.push_back(make_request(kind, given, 0, {{own, 0, nullptr}, cancel_of(own)}));
    model->queue().add(one);
  });
}

/// The text of a result's best output, for seqconv_free; a result that is not ok is a failure.
seqconv_status take_text(const seqconv_result& result, char*& text) {
  if (result.status != SEQCONV_OK)
    fail_call(static_cast<seqconv_status>(result.status), result.error.data);
  const seqconv_text& best = result.outputs[0]->text;
  text = new char[static_cast<size_t>(best.size) + 1];
  std::memcpy(text, best.data, static_cast<size_t>(best.size) + 1);
  return SEQCONV_OK;
}

}  // namespace
}  // namespace seqconv::internal

namespace api = seqconv::internal;

extern "C" {

seqconv_status seqconv_translate_text(
    const seqconv_model* model, const char* text, char** translation) {
  seqconv_translation_request request = SEQCONV_TRANSLATION_REQUEST_INIT;
  request.text = seqconv_text_of(text);
  seqconv_result* result = nullptr;
  const seqconv_status status = seqconv_translate(model, &request, 1, nullptr, &result);
  if (status != SEQCONV_OK)
    return status;
  const api::OwnResult own(result);
  return api::guarded(
      SEQCONV_ERROR, [&] { api::take_text(*own, api::required(translation, "translation")); });
}

seqconv_status seqconv_translate(
    const seqconv_model* model,
    const seqconv_translation_request* requests,
    int64_t count,
    const seqconv_call* call,
    seqconv_result** results) {
  return api::wait_for(api::kTranslate, model, requests, count, call, results);
}

seqconv_status seqconv_summarise(
    const seqconv_model* model,
    const seqconv_translation_request* requests,
    int64_t count,
    const seqconv_call* call,
    seqconv_result** results) {
  return api::wait_for(api::kSummarise, model, requests, count, call, results);
}

seqconv_status seqconv_score(
    const seqconv_model* model,
    const seqconv_score_request* requests,
    int64_t count,
    const seqconv_call* call,
    seqconv_result** results) {
  return api::wait_for(api::kScore, model, requests, count, call, results);
}

seqconv_status seqconv_generate(
    const seqconv_model* model,
    const seqconv_generation_request* requests,
    int64_t count,
    const seqconv_call* call,
    seqconv_result** results) {
  return api::wait_for(api::kGenerate, model, requests, count, call, results);
}

seqconv_status seqconv_translate_async(
    const seqconv_model* model,
    const seqconv_translation_request* request,
    const seqconv_call* call) {
  return api::begin(api::kTranslate, model, request, call);
}

seqconv_status seqconv_summarise_async(
    const seqconv_model* model,
    const seqconv_translation_request* request,
    const seqconv_call* call) {
  return api::begin(api::kSummarise, model, request, call);
}

seqconv_status seqconv_score_async(
    const seqconv_model* model, const seqconv_score_request* request, const seqconv_call* call) {
  return api::begin(api::kScore, model, request, call);
}

seqconv_status seqconv_generate_async(
    const seqconv_model* model,
    const seqconv_generation_request* request,
    const seqconv_call* call) {
  return api::begin(api::kGenerate, model, request, call);
}

}  // extern "C"
