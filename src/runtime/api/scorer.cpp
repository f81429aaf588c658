#include "pipeline/scorer.h"

#include "runtime/api/conversions.h"
#include "runtime/api/guarded.h"

namespace seqconv {

class Scorer::Impl {
 public:
  internal::ScorerOptions options;
  internal::TranslationSystem system;
};

Scorer::Scorer(const std::string& model, const RuntimeOptions& options)
    : impl_(guarded<ModelError>([&] {
        const int64_t threads = check_options_of_others(options);
        return std::make_unique<Impl>(Impl{
            {.batch_tokens = options.batch_tokens, .workers = threads},
            open_translation({to_path(model, options)}, to_backends(options))});
      })) {}

Scorer::~Scorer() = default;
Scorer::Scorer(Scorer&&) noexcept = default;
Scorer& Scorer::operator=(Scorer&&) noexcept = default;

double Scorer::score(std::string_view source, std::string_view target) const {
  return guarded([&] {
    const ScoreResult result =
        score(std::vector{ScoreRequest{std::string(source), std::string(target)}})[0];
    require_ok(result);
    return result.log_probability;
  });
}

std::vector<ScoreResult> Scorer::score(
    const std::vector<ScoreRequest>& requests, const CancelToken& cancel) const {
  return guarded([&] {
    return score_requests(
        impl_->system, requests, impl_->options, [&] { return cancel.is_cancelled(); });
  });
}

}  // namespace seqconv
