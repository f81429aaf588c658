#include "validate.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "seqconv/base/log.h"
#include "seqconv/data/sentence_reader.h"
#include "seqconv/metrics/bleu.h"
#include "seqconv/nn/dropout_plan.h"
#include "seqconv/torch_backend/backend.h"

namespace seqconv {
namespace {

constexpr size_t kLinesAtATime = 256;

}  // namespace

CorpusLoss corpus_loss(double loss, double nll, int64_t target_tokens) {
  const double per_token = 1 /
      (std::numbers::ln2 *
       static_cast<double>(std::max<int64_t>(target_tokens, 1)));
  return {
      .loss_base2 = loss * per_token,
      .nll_base2 = nll * per_token,
      .perplexity = std::exp2(nll * per_token),
      .target_tokens = target_tokens};
}

CorpusLoss validation_loss(
    const SequenceModel& model,
    const Batcher& batches,
    const ops::CrossEntropyOptions& loss,
    const BetweenBatches& between) {
  at::NoGradGuard no_grad;
  double loss_sum = 0;
  double nll_sum = 0;
  int64_t target_tokens = 0;
  for (int64_t i = 0; i < batches.size(); ++i) {
    const Batch batch = batches.batch(i);
    DropoutPlan evaluation;
    const ops::CrossEntropySums sums = model.loss(batch, loss, evaluation);
    loss_sum += sums.loss.item<double>();
    nll_sum += sums.nll.item<double>();
    target_tokens += batch.target_tokens;
    between();
  }
  return corpus_loss(loss_sum, nll_sum, target_tokens);
}

ValidationText read_validation_text(
    const DataOptions& data,
    const TranslationText& text) {
  ValidationText read;
  const PairSources pairs = data.validation_pairs();
  for (const TextSource& file : pairs.source)
    for (SentenceReader sentences(file, text.source->vocabulary().size());
         sentences.next();) {
      if (sentences.is_text())
        read.sources.push_back({.line = sentences.line()});
      else
        read.sources.push_back({.ids = sentences.ids()});
    }
  for (const TextSource& file : pairs.target)
    for (SentenceReader sentences(file, text.target->vocabulary().size());
         sentences.next();)
      read.references.push_back(
          sentences.is_text() ? sentences.line()
                              : text.target->decode(sentences.ids()));
  return read;
}

void warn_of_missing_words(const std::vector<std::string>& references) {
  const std::string_view language =
      language_without_words(references, BleuOptions());
  if (!language.empty())
    log_warning(
        "the validation text is ",
        language,
        ", which has no blanks between words: its BLEU says little; 'chrf' in "
        "training.best_by or training.validate_metrics counts characters");
}

std::optional<std::vector<std::string>> translate_validation_text(
    const LoadedModel& model,
    const SearchOptions& search,
    const ValidationText& text,
    const BetweenBatches& between) {
  TranslatorOptions options;
  options.search = search;
  options.search.n_best = 1;
  const Translator translator(make_system(model), options);
  std::vector<std::string> hypotheses;
  for (size_t i = 0; i < text.sources.size(); i += kLinesAtATime) {
    const auto first = text.sources.begin() + static_cast<int64_t>(i);
    const size_t count = std::min(kLinesAtATime, text.sources.size() - i);
    const std::vector<TranslationRequest> requests(
        first,
        first + static_cast<int64_t>(count));
    for (const TranslationResult& result : translator.translate(requests)) {
      if (!result.error.empty()) {
        log_warning("nothing can be translated: ", result.error);
        return std::nullopt;
      }
      hypotheses.push_back(result.translations.front().text);
    }
    between();
  }
  return hypotheses;
}

}  // namespace seqconv
