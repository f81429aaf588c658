#include "seqconv/pipeline/translator.h"

#include "conversions.h"
#include "guarded.h"
#include "request_queue.h"
#include "seqconv/base/threads.h"
#include "seqconv/runtime/runtime.h"

namespace seqconv::api {
namespace {

TranslatorOptions translator_options(
    const RuntimeOptions& options,
    const SearchOptions& search,
    int64_t workers) {
  if (options.batch_tokens < 1)
    fail_usage(
        "batch_tokens must be at least 1, but got ",
        options.batch_tokens);
  TranslatorOptions result;
  result.search = search;
  result.batch_tokens = options.batch_tokens;
  result.workers = workers;
  return result;
}

int64_t threads_of(const RuntimeOptions& options) {
  if (options.threads < 0)
    fail_usage("threads must be at least 0, but got ", options.threads);
  return thread_count(options.threads);
}

TranslationSystem open(const std::vector<std::string>& models) {
  return open_translation({models.begin(), models.end()}, RuntimeBackends());
}

}  // namespace

class Translator::Impl {
 public:
  Impl(TranslationSystem system, const RuntimeOptions& options)
      : translator(
            system,
            translator_options(options, system.decoding, threads_of(options))),
        alone(
            system,
            translator_options(options, system.decoding, /*workers=*/1)),
        queue(alone, threads_of(options)) {}

  seqconv::TranslationRequest converted(
      const TranslationRequest& request) const {
    return to_request(request, translator.options().search);
  }

  void run(
      const std::vector<TranslationRequest>& requests,
      const TranslationHooks& hooks) const {
    std::vector<seqconv::TranslationRequest> all;
    for (const TranslationRequest& request : requests)
      all.push_back(converted(request));
    translator.translate(all, hooks);
  }

  seqconv::Translator translator;
  seqconv::Translator alone;  ///< of one worker, for the queue's threads
  RequestQueue queue;
};

Translator::Translator(const std::string& model, const RuntimeOptions& options)
    : Translator(std::vector{model}, options) {}

Translator::Translator(
    const std::vector<std::string>& models,
    const RuntimeOptions& options)
    : impl_(guarded<ModelError>(
          [&] { return std::make_unique<Impl>(open(models), options); })) {}

Translator::~Translator() = default;
Translator::Translator(Translator&&) noexcept = default;
Translator& Translator::operator=(Translator&&) noexcept = default;

Translation Translator::translate(std::string_view text) const {
  TranslationResult result =
      translate(std::vector{TranslationRequest{.text = std::string(text)}})[0];
  if (!result.ok())
    throw Error(result.error);
  return std::move(result.translations.front());
}

std::vector<TranslationResult> Translator::translate(
    const std::vector<TranslationRequest>& requests,
    const CancelToken& cancel) const {
  std::vector<TranslationResult> results(requests.size());
  translate(
      requests,
      [&](size_t i, TranslationResult result) {
        results[i] = std::move(result);
      },
      cancel);
  return results;
}

void Translator::translate(
    const std::vector<TranslationRequest>& requests,
    const std::function<void(size_t, TranslationResult)>& on_result,
    const CancelToken& cancel) const {
  guarded([&] {
    impl_->run(
        requests,
        {.stop = [&] { return cancel.is_cancelled(); },
         .done =
             [&](size_t i, const seqconv::TranslationResult& result) {
               on_result(i, to_result(result));
             }});
  });
}

std::future<TranslationResult> Translator::translate_async(
    TranslationRequest request,
    CancelToken cancel) const {
  return guarded([&] {
    return impl_->queue.add(impl_->converted(request), std::move(cancel));
  });
}

class Scorer::Impl {
 public:
  TranslationSystem system;
  RuntimeOptions options;
  int64_t threads;
};

Scorer::Scorer(const std::string& model, const RuntimeOptions& options)
    : impl_(guarded<ModelError>([&] {
        return std::make_unique<Impl>(
            Impl{open({model}), options, threads_of(options)});
      })) {}

Scorer::~Scorer() = default;
Scorer::Scorer(Scorer&&) noexcept = default;
Scorer& Scorer::operator=(Scorer&&) noexcept = default;

std::vector<double> Scorer::score(const std::vector<Pair>& pairs) const {
  return guarded([&] {
    std::vector<std::vector<int32_t>> sources, targets;
    for (const Pair& pair : pairs) {
      sources.push_back(impl_->system.text.source->encode(pair.source));
      targets.push_back(impl_->system.text.target->encode(pair.target));
    }
    return score_pairs(
        *impl_->system.backend,
        sources,
        targets,
        impl_->options.batch_tokens,
        impl_->threads);
  });
}

}  // namespace seqconv::api
