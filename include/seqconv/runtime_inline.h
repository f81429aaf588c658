#pragma once

#include "seqconv/runtime.h"

/// Puts the classes of seqconv/runtime.h on the C interface. Programs include that header.
namespace seqconv::detail {

/// Made when the program is loaded: throwing a copy needs no memory.
inline const OutOfMemory kNoMemory("out of memory");

/// Throws what a call that failed stands for.
inline void check(seqconv_status status) {
  switch (status) {
    case SEQCONV_OK:
      return;
    case SEQCONV_OUT_OF_MEMORY:
      throw OutOfMemory(kNoMemory);
    case SEQCONV_MODEL_ERROR:
    case SEQCONV_TASK_ERROR:
      throw ModelError(seqconv_last_error());
    case SEQCONV_OPTION_ERROR:
      throw OptionError(seqconv_last_error());
    case SEQCONV_QUEUE_FULL:
      throw QueueFull(seqconv_last_error());
    default:
      throw Error(seqconv_last_error());
  }
}

/// Returns what `work` gives; memory that it lacks is an OutOfMemory.
template <class Work>
auto guarded(const Work& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    throw OutOfMemory(kNoMemory);
  }
}

/// RequestError or OutOfMemory for a result that is not ok.
inline void require_ok(const Result& result) {
  if (result.status == Status::kOutOfMemory)
    throw OutOfMemory(kNoMemory);
  if (!result.ok())
    throw RequestError(result.error);
}

class Access {
 public:
  static seqconv_cancel_token* token(const CancelToken& cancel) { return cancel.token_.get(); }
};

inline Model open(
    const std::vector<std::string>& folders, const RuntimeOptions& options, seqconv_task task) {
  return guarded([&] {
    seqconv_runtime_options own = SEQCONV_RUNTIME_OPTIONS_INIT;
    own.task = task;
    own.compute = static_cast<int32_t>(options.compute);
    own.follow_links = options.follow_links ? 1 : 0;
    own.threads = options.threads;
    own.batch_tokens = options.batch_tokens;
    own.logits_bytes = options.logits_bytes;
    own.max_source_tokens = options.max_source_tokens;
    own.queue_limit = options.queue_limit;
    own.max_wait_ms = options.max_wait_ms;
    own.terminology = options.terminology.empty() ? nullptr : options.terminology.c_str();
    own.shortlist = options.shortlist.empty() ? nullptr : options.shortlist.c_str();
    std::vector<const char*> names;
    for (const std::string& folder : folders)
      names.push_back(folder.c_str());
    seqconv_model* model = nullptr;
    check(seqconv_open(names.data(), static_cast<int64_t>(names.size()), &own, &model));
    return Model(model);
  });
}

inline ModelInfo info_of(const Model& model) {
  const seqconv_model_info& info = *seqconv_info(model.get());
  ModelInfo own{
      info.models,
      info.threads,
      info.parameters,
      info.file_bytes,
      info.weight_bytes,
      info.source_vocabulary,
      info.target_vocabulary,
      info.max_source_tokens,
      info.max_target_tokens,
      info.compute};
  if (info.search != nullptr)
    own.search = {
        .beam = info.search->beam,
        .n_best = info.search->n_best,
        .length_penalty = info.search->length_penalty,
        .max_length_a = info.search->max_length_a,
        .max_length_b = info.search->max_length_b,
        .min_length = info.search->min_length,
        .no_repeat_ngram = info.search->no_repeat_ngram,
        .unknown_penalty = info.search->unknown_penalty,
        .ban_unknown = info.search->ban_unknown != 0,
        .stepwise_length_penalty = info.search->stepwise_length_penalty != 0};
  return own;
}

// ---- Requests --------------------------------------------------------------------------------

inline seqconv_text text_of(const std::string& text) {
  return {text.data(), static_cast<int64_t>(text.size())};
}

/// Tokens as C has them. Some that are given are not NULL, though there are none.
class Tokens {
 public:
  explicit Tokens(const std::optional<std::vector<std::string>>& given) {
    if (!given)
      return;
    texts_.reserve(given->size() + 1);
    for (const std::string& token : *given)
      texts_.push_back(text_of(token));
    count_ = static_cast<int64_t>(texts_.size());
    texts_.push_back(SEQCONV_NO_TEXT);
  }
  const seqconv_text* data() const { return texts_.empty() ? nullptr : texts_.data(); }
  int64_t count() const { return count_; }

 private:
  std::vector<seqconv_text> texts_;
  int64_t count_ = 0;
};

inline seqconv_sampling_options to_c(const SamplingOptions& options) {
  seqconv_sampling_options own = SEQCONV_SAMPLING_OPTIONS_INIT;
  own.temperature = options.temperature;
  own.top_k = options.top_k;
  own.top_p = options.top_p;
  own.ban_unknown = options.ban_unknown ? 1 : 0;
  own.has_seed = options.seed ? 1 : 0;
  own.seed = options.seed.value_or(0);
  return own;
}

inline seqconv_search_options to_c(const SearchOptions& options) {
  seqconv_search_options own = SEQCONV_SEARCH_OPTIONS_INIT;
  own.beam = options.beam.value_or(own.beam);
  own.n_best = options.n_best.value_or(own.n_best);
  own.max_length_b = options.max_length_b.value_or(own.max_length_b);
  own.min_length = options.min_length.value_or(own.min_length);
  own.no_repeat_ngram = options.no_repeat_ngram.value_or(own.no_repeat_ngram);
  own.max_length_a = options.max_length_a.value_or(own.max_length_a);
  own.length_penalty = options.length_penalty.value_or(own.length_penalty);
  own.unknown_penalty = options.unknown_penalty.value_or(own.unknown_penalty);
  const auto flag = [](const std::optional<bool>& given) {
    return given ? static_cast<int32_t>(*given) : SEQCONV_OWN_FLAG;
  };
  own.ban_unknown = flag(options.ban_unknown);
  own.stepwise_length_penalty = flag(options.stepwise_length_penalty);
  return own;
}

/// A request as C has it; refers to the one that it was made of.
class GivenTranslation {
 public:
  explicit GivenTranslation(const TranslationRequest& request)
      : search_(to_c(request.search)),
        tokens_(request.tokens),
        prefix_tokens_(request.target_prefix_tokens) {
    if (request.sampling)
      sampling_ = to_c(*request.sampling);
    for (const Term& term : request.terms)
      terms_.push_back({text_of(term.source), text_of(term.target)});
    own_.text = text_of(request.text);
    own_.prefix = text_of(request.target_prefix);
    own_.alignments = static_cast<int32_t>(request.alignments);
    own_.timeout_ms = request.timeout.count();
  }
  seqconv_translation_request seen(bool streams = false) const {
    seqconv_translation_request seen = own_;
    seen.tokens = tokens_.data();
    seen.token_count = tokens_.count();
    seen.prefix_tokens = prefix_tokens_.data();
    seen.prefix_token_count = prefix_tokens_.count();
    seen.terms = terms_.data();
    seen.term_count = static_cast<int64_t>(terms_.size());
    seen.search = &search_;
    seen.sampling = sampling_ ? &*sampling_ : nullptr;
    seen.stream = streams ? 1 : 0;
    return seen;
  }

 private:
  seqconv_translation_request own_ = SEQCONV_TRANSLATION_REQUEST_INIT;
  seqconv_search_options search_;
  std::optional<seqconv_sampling_options> sampling_;
  Tokens tokens_;
  Tokens prefix_tokens_;
  std::vector<seqconv_term> terms_;
};

inline seqconv_score_request to_c(const ScoreRequest& request) {
  seqconv_score_request own = SEQCONV_SCORE_REQUEST_INIT;
  own.source = text_of(request.source);
  own.target = text_of(request.target);
  own.timeout_ms = request.timeout.count();
  return own;
}

class GivenGeneration {
 public:
  explicit GivenGeneration(const GenerationRequest& request)
      : request_(request), sampling_(to_c(request.sampling)), tokens_(request.prompt_tokens) {}
  seqconv_generation_request seen(bool streams) const {
    seqconv_generation_request seen = SEQCONV_GENERATION_REQUEST_INIT;
    seen.prompt = text_of(request_.prompt);
    seen.prompt_tokens = tokens_.data();
    seen.prompt_token_count = tokens_.count();
    seen.length = request_.length;
    seen.sampling = &sampling_;
    seen.stream = streams ? 1 : 0;
    seen.timeout_ms = request_.timeout.count();
    return seen;
  }

 private:
  const GenerationRequest& request_;
  seqconv_sampling_options sampling_;
  Tokens tokens_;
};

// ---- Results ---------------------------------------------------------------------------------

inline std::string string_of(const seqconv_text& text) {
  return {text.data, static_cast<size_t>(text.size)};
}

inline std::vector<std::string> strings_of(const seqconv_text* texts, int64_t count) {
  std::vector<std::string> all;
  all.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    all.push_back(string_of(texts[i]));
  return all;
}

inline std::vector<ByteRange> ranges_of(const seqconv_byte_range* ranges, int64_t count) {
  std::vector<ByteRange> all;
  for (int64_t i = 0; ranges != nullptr && i < count; ++i)
    all.push_back({ranges[i].begin, ranges[i].end});
  return all;
}

inline std::vector<float> numbers_of(const float* numbers, int64_t count) {
  return numbers == nullptr ? std::vector<float>() : std::vector<float>(numbers, numbers + count);
}

inline Status status_of(int32_t status) {
  switch (status) {
    case SEQCONV_OK:
      return Status::kOk;
    case SEQCONV_INVALID:
      return Status::kInvalid;
    case SEQCONV_OUT_OF_MEMORY:
      return Status::kOutOfMemory;
    case SEQCONV_CANCELLED:
      return Status::kCancelled;
    case SEQCONV_TIMED_OUT:
      return Status::kTimedOut;
    default:
      return Status::kFailed;
  }
}

inline void read_into(const seqconv_result& from, TranslationResult& into) {
  for (int64_t i = 0; i < from.output_count; ++i) {
    const seqconv_output& output = *from.outputs[i];
    Translation& own = into.translations.emplace_back();
    own.text = string_of(output.text);
    own.tokens = strings_of(output.tokens, output.token_count);
    own.score = output.score;
    own.log_probability = output.log_probability;
    own.token_scores = numbers_of(output.token_scores, output.token_count);
    own.token_ranges = ranges_of(output.token_ranges, output.token_count);
    for (int64_t pair = 0; pair < output.pair_count; ++pair)
      own.alignment.push_back({output.pairs[pair].source, output.pairs[pair].target});
    own.source_shares =
        numbers_of(output.source_shares, output.token_count * from.source_token_count);
  }
  into.source_tokens = strings_of(from.source_tokens, from.source_token_count);
  into.source_ranges = ranges_of(from.source_ranges, from.source_token_count);
}

inline void read_into(const seqconv_result& from, ScoreResult& into) {
  if (from.output_count > 0)
    into.log_probability = from.outputs[0]->log_probability;
}

inline void read_into(const seqconv_result& from, GenerationResult& into) {
  if (from.output_count == 0)
    return;
  const seqconv_output& output = *from.outputs[0];
  into.text = string_of(output.text);
  into.tokens = strings_of(output.tokens, output.token_count);
  into.token_scores = numbers_of(output.token_scores, output.token_count);
  into.log_probability = output.log_probability;
}

struct FreeResult {
  void operator()(seqconv_result* result) const { seqconv_result_free(result); }
};
using CResult = std::unique_ptr<seqconv_result, FreeResult>;

/// The result; where there is not memory enough for it, it says so.
template <class Own>
Own take_result(seqconv_result* given) noexcept {
  const CResult result(given);
  try {
    Own own;
    own.status = status_of(result->status);
    own.error = string_of(result->error);
    own.notes = strings_of(result->notes, result->note_count);
    read_into(*result, own);
    return own;
  } catch (const std::bad_alloc&) {
    Own own;
    own.status = Status::kOutOfMemory;
    own.error = "out of memory";  // short enough to need none
    return own;
  }
}

/// A function of the caller's, which C must not see throw.
class CallerFunction {
 public:
  /// Makes `call` unless one has thrown before; false: it wants no more, or has thrown.
  template <class Call>
  bool make(const Call& call) noexcept {
    if (exception_)
      return false;
    try {
      return call();
    } catch (...) {
      exception_ = std::current_exception();
      return false;
    }
  }
  void rethrow() const {
    if (exception_)
      std::rethrow_exception(exception_);
  }

 private:
  std::exception_ptr exception_;
};

/// Calls C with results that `hear`(number, result) hears, which throws nothing; false: no more.
template <class Hear, class Make>
void call_heard(const CancelToken& cancel, const Hear& hear, const Make& make) {
  seqconv_call call = SEQCONV_CALL_INIT;
  call.cancel = Access::token(cancel);
  call.user = const_cast<Hear*>(&hear);
  call.heard = [](void* user, int64_t number, seqconv_result* result) -> int32_t {
    return (*static_cast<const Hear*>(user))(number, CResult(result)) ? 0 : 1;
  };
  check(make(call));
}

/// The result of one request whose parts `on_part`(bytes kept, text) hears; false: enough. Its
/// exceptions leave this call.
template <class Own, class OnPart, class Make>
Own call_stream(const CancelToken& cancel, const OnPart& on_part, const Make& make) {
  CallerFunction heard;
  Own whole;
  const auto hear = [&](int64_t /*number*/, CResult result) {
    if (result->status != SEQCONV_PART) {
      whole = take_result<Own>(result.release());
      return true;
    }
    const seqconv_text& text = result->outputs[0]->text;
    const std::string_view part(text.data, static_cast<size_t>(text.size));
    return heard.make([&] { return on_part(static_cast<size_t>(result->kept_bytes), part); });
  };
  guarded([&] { call_heard(cancel, hear, make); });
  heard.rethrow();
  return whole;
}

/// Begins a request whose result a future has.
template <class Own, class Make>
std::future<Own> call_async(const CancelToken& cancel, const Make& make) {
  return guarded([&] {
    auto promise = std::make_unique<std::promise<Own>>();
    std::future<Own> future = promise->get_future();
    seqconv_call call = SEQCONV_CALL_INIT;
    call.cancel = Access::token(cancel);
    call.user = promise.get();
    call.heard = [](void* user, int64_t /*number*/, seqconv_result* result) -> int32_t {
      const std::unique_ptr<std::promise<Own>> own(static_cast<std::promise<Own>*>(user));
      own->set_value(take_result<Own>(result));
      return 0;
    };
    check(make(call));
    static_cast<void>(promise.release());
    return future;
  });
}

/// Begins a request whose result a function is given.
template <class Own, class Make>
void call_async(std::function<void(Own)> on_result, const CancelToken& cancel, const Make& make) {
  guarded([&] {
    auto function = std::make_unique<std::function<void(Own)>>(std::move(on_result));
    seqconv_call call = SEQCONV_CALL_INIT;
    call.cancel = Access::token(cancel);
    call.user = function.get();
    call.heard = [](void* user, int64_t /*number*/, seqconv_result* result) -> int32_t {
      const std::unique_ptr<std::function<void(Own)>> own(
          static_cast<std::function<void(Own)>*>(user));
      (*own)(take_result<Own>(result));
      return 0;
    };
    check(make(call));
    static_cast<void>(function.release());
  });
}

inline std::vector<seqconv_translation_request> seen_of(const std::deque<GivenTranslation>& given) {
  std::vector<seqconv_translation_request> seen;
  seen.reserve(given.size());
  for (const GivenTranslation& one : given)
    seen.push_back(one.seen());
  return seen;
}

/// Results of a list in its order, by a call over C.
template <class Own, class Make>
std::vector<Own> call_list(size_t count, const CancelToken& cancel, const Make& make) {
  std::vector<Own> results(count);
  const auto hear = [&](int64_t number, CResult result) {
    results[static_cast<size_t>(number)] = take_result<Own>(result.release());
    return true;
  };
  call_heard(cancel, hear, make);
  return results;
}

/// Results of translations or summaries, by the function of C for them.
template <class Function>
std::vector<TranslationResult> call_translations(
    const Model& model,
    const std::vector<TranslationRequest>& requests,
    const CancelToken& cancel,
    Function function) {
  return guarded([&] {
    const std::deque<GivenTranslation> given(requests.begin(), requests.end());
    const auto seen = seen_of(given);
    return call_list<TranslationResult>(requests.size(), cancel, [&](const seqconv_call& call) {
      return function(model.get(), seen.data(), static_cast<int64_t>(seen.size()), &call, nullptr);
    });
  });
}

}  // namespace seqconv::detail

namespace seqconv {

inline CancelToken::CancelToken() {
  detail::guarded([&] {
    seqconv_cancel_token* token = nullptr;
    detail::check(seqconv_cancel_token_new(&token));
    token_ = std::shared_ptr<seqconv_cancel_token>(token, seqconv_cancel_token_free);
  });
}

inline Translator::Translator(const std::string& model, const RuntimeOptions& options)
    : Translator(detail::guarded([&] { return std::vector{model}; }), options) {}

inline Translator::Translator(const std::vector<std::string>& models, const RuntimeOptions& options)
    : model_(detail::open(models, options, SEQCONV_TASK_TRANSLATION)) {}

inline Translation Translator::translate(std::string_view text) const {
  return detail::guarded([&] {
    TranslationResult result =
        translate(std::vector{TranslationRequest{.text = std::string(text)}})[0];
    detail::require_ok(result);
    return std::move(result.translations.front());
  });
}

inline std::vector<TranslationResult> Translator::translate(
    const std::vector<TranslationRequest>& requests, const CancelToken& cancel) const {
  return detail::call_translations(model_, requests, cancel, seqconv_translate);
}

inline void Translator::translate(
    const std::vector<TranslationRequest>& requests,
    const std::function<void(size_t, TranslationResult)>& on_result,
    const CancelToken& cancel) const {
  if (!on_result)
    throw OptionError("on_result must be a function, but is empty");
  detail::CallerFunction heard;
  detail::guarded([&] {
    const std::deque<detail::GivenTranslation> given(requests.begin(), requests.end());
    const auto seen = detail::seen_of(given);
    const auto hear = [&](int64_t number, detail::CResult result) {
      const auto call = [&] {
        on_result(
            static_cast<size_t>(number), detail::take_result<TranslationResult>(result.release()));
        return true;
      };
      return heard.make(call);
    };
    detail::call_heard(cancel, hear, [&](const seqconv_call& call) {
      return seqconv_translate(
          model_.get(), seen.data(), static_cast<int64_t>(seen.size()), &call, nullptr);
    });
  });
  heard.rethrow();
}

inline TranslationResult Translator::stream(
    const TranslationRequest& request,
    const std::function<bool(size_t kept, std::string_view text)>& on_part,
    const CancelToken& cancel) const {
  if (!on_part)
    throw OptionError("on_part must be a function, but is empty");
  return detail::call_stream<TranslationResult>(cancel, on_part, [&](const seqconv_call& call) {
    const detail::GivenTranslation given(request);
    const seqconv_translation_request seen = given.seen(/*streams=*/true);
    return seqconv_translate(model_.get(), &seen, 1, &call, nullptr);
  });
}

inline std::vector<TranslationResult> Translator::summarise(
    const std::vector<TranslationRequest>& requests, const CancelToken& cancel) const {
  return detail::call_translations(model_, requests, cancel, seqconv_summarise);
}

inline std::future<TranslationResult> Translator::translate_async(
    const TranslationRequest& request, const CancelToken& cancel) const {
  return detail::call_async<TranslationResult>(cancel, [&](const seqconv_call& call) {
    const detail::GivenTranslation given(request);
    const seqconv_translation_request seen = given.seen();
    return seqconv_translate_async(model_.get(), &seen, &call);
  });
}

inline void Translator::translate_async(
    const TranslationRequest& request,
    std::function<void(TranslationResult)> on_result,
    const CancelToken& cancel) const {
  if (!on_result)
    throw OptionError("on_result must be a function, but got none");
  detail::call_async<TranslationResult>(
      std::move(on_result), cancel, [&](const seqconv_call& call) {
        const detail::GivenTranslation given(request);
        const seqconv_translation_request seen = given.seen();
        return seqconv_translate_async(model_.get(), &seen, &call);
      });
}

inline ModelInfo Translator::info() const {
  return detail::guarded([&] { return detail::info_of(model_); });
}

inline Scorer::Scorer(const std::string& model, const RuntimeOptions& options)
    : model_(detail::guarded([&] {
        if (!options.shortlist.empty())
          throw OptionError(
              "a shortlist is for translating alone, but got '" + options.shortlist + "'");
        if (options.max_source_tokens > 0)
          throw OptionError(
              "max_source_tokens is for translating alone, but got " +
              std::to_string(options.max_source_tokens));
        return detail::open({model}, options, SEQCONV_TASK_TRANSLATION);
      })) {}

inline double Scorer::score(std::string_view source, std::string_view target) const {
  return detail::guarded([&] {
    const ScoreResult result =
        score(std::vector{ScoreRequest{std::string(source), std::string(target)}})[0];
    detail::require_ok(result);
    return result.log_probability;
  });
}

inline std::vector<ScoreResult> Scorer::score(
    const std::vector<ScoreRequest>& requests, const CancelToken& cancel) const {
  return detail::guarded([&] {
    std::vector<seqconv_score_request> seen;
    for (const ScoreRequest& request : requests)
      seen.push_back(detail::to_c(request));
    return detail::call_list<ScoreResult>(requests.size(), cancel, [&](const seqconv_call& call) {
      return seqconv_score(
          model_.get(), seen.data(), static_cast<int64_t>(seen.size()), &call, nullptr);
    });
  });
}

inline std::future<ScoreResult> Scorer::score_async(
    const ScoreRequest& request, const CancelToken& cancel) const {
  return detail::call_async<ScoreResult>(cancel, [&](const seqconv_call& call) {
    const seqconv_score_request seen = detail::to_c(request);
    return seqconv_score_async(model_.get(), &seen, &call);
  });
}

inline ModelInfo Scorer::info() const {
  return detail::guarded([&] { return detail::info_of(model_); });
}

inline Generator::Generator(const std::string& model, const RuntimeOptions& options)
    : model_(detail::guarded(
          [&] { return detail::open({model}, options, SEQCONV_TASK_LANGUAGE_MODEL); })) {}

inline std::string Generator::generate(std::string_view prompt) const {
  return detail::guarded([&] {
    GenerationResult result = generate(GenerationRequest{.prompt = std::string(prompt)});
    detail::require_ok(result);
    return std::move(result.text);
  });
}

inline GenerationResult Generator::generate(
    const GenerationRequest& request,
    const std::function<bool(std::string_view)>& on_text,
    const CancelToken& cancel) const {
  const auto on_part = [&](size_t /*kept*/, std::string_view text) { return on_text(text); };
  return detail::call_stream<GenerationResult>(cancel, on_part, [&](const seqconv_call& call) {
    const detail::GivenGeneration given(request);
    const seqconv_generation_request seen = given.seen(static_cast<bool>(on_text));
    return seqconv_generate(model_.get(), &seen, 1, &call, nullptr);
  });
}

inline std::future<GenerationResult> Generator::generate_async(
    const GenerationRequest& request, const CancelToken& cancel) const {
  return detail::call_async<GenerationResult>(cancel, [&](const seqconv_call& call) {
    const detail::GivenGeneration given(request);
    const seqconv_generation_request seen = given.seen(/*streams=*/false);
    return seqconv_generate_async(model_.get(), &seen, &call);
  });
}

inline ModelInfo Generator::info() const {
  return detail::guarded([&] { return detail::info_of(model_); });
}

}  // namespace seqconv
