#include "pipeline/translator.h"

#include "runtime/api/conversions.h"
#include "runtime/api/guarded.h"
#include "runtime/api/request_queue.h"

namespace seqconv {
namespace {

internal::TranslatorOptions translator_options(
    const RuntimeOptions& options, const internal::DecodingOptions& search, int64_t workers) {
  internal::TranslatorOptions result;
  result.search = search;
  result.batch_tokens = options.batch_tokens;
  result.workers = workers;
  result.max_source_tokens = options.max_source_tokens;
  return result;
}

}  // namespace

class Translator::Impl {
 public:
  Impl(const internal::TranslationSystem& system, const RuntimeOptions& options, int64_t threads)
      : translator_(system, translator_options(options, system.decoding, threads)),
        alone_(system, translator_options(options, system.decoding, /*workers=*/1)),
        queue_(alone_, threads) {}

  void run(const std::vector<TranslationRequest>& requests, const internal::TranslationHooks& hooks)
      const {
    std::vector<internal::TranslationInput> all;
    all.reserve(requests.size());
    for (const TranslationRequest& request : requests)
      all.push_back(to_input(request, all.size() + 1));
    translator_.translate(all, hooks);
  }

  RequestQueue& queue() { return queue_; }

 private:
  internal::Translator translator_;
  internal::Translator alone_;  // of one worker, for the queue's threads
  RequestQueue queue_;
};

Translator::Translator(const std::string& model, const RuntimeOptions& options)
    : Translator(guarded([&] { return std::vector{model}; }), options) {}

Translator::Translator(const std::vector<std::string>& models, const RuntimeOptions& options)
    : impl_(guarded<ModelError>([&] {
        const int64_t threads = check_options(options);
        std::vector<internal::RootedPath> paths;
        for (const std::string& model : models)
          paths.push_back(to_path(model, options));
        return std::make_unique<Impl>(
            open_translation(paths, to_backends(options), options.shortlist), options, threads);
      })) {}

Translator::~Translator() = default;
Translator::Translator(Translator&&) noexcept = default;
Translator& Translator::operator=(Translator&&) noexcept = default;

Translation Translator::translate(std::string_view text) const {
  return guarded([&] {
    TranslationResult result =
        translate(std::vector{TranslationRequest{.text = std::string(text)}})[0];
    require_ok(result);
    return std::move(result.translations.front());
  });
}

std::vector<TranslationResult> Translator::translate(
    const std::vector<TranslationRequest>& requests, const CancelToken& cancel) const {
  return guarded([&] {
    std::vector<TranslationResult> results(requests.size());
    translate(
        requests,
        [&](size_t i, TranslationResult result) { results[i] = std::move(result); },
        cancel);
    return results;
  });
}

void Translator::translate(
    const std::vector<TranslationRequest>& requests,
    const std::function<void(size_t, TranslationResult)>& on_result,
    const CancelToken& cancel) const {
  if (!on_result)
    throw OptionError("on_result must be a function, but is empty");
  CallerFunction heard;
  guarded([&] {
    impl_->run(
        requests,
        {.stop = [&] { return heard.has_thrown() || cancel.is_cancelled(); },
         .done =
             [&](size_t i, const internal::TranslationOutcome& result) {
               heard.make([&] { on_result(i, to_result(result)); });
             }});
  });
  heard.rethrow();
}

std::future<TranslationResult> Translator::translate_async(
    TranslationRequest request, CancelToken cancel) const {
  return guarded([&] { return impl_->queue().add(to_input(request, 1), cancel); });
}

}  // namespace seqconv
