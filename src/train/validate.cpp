#include "validate.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "agreement.h"
#include "seqconv/base/log.h"
#include "seqconv/data/sentence_reader.h"
#include "seqconv/metrics/bleu.h"
#include "seqconv/nn/dropout_plan.h"
#include "seqconv/ops/device.h"
#include "seqconv/torch_backend/backend.h"

namespace seqconv {
namespace {

constexpr size_t kLinesAtATime = 256;

/// The lines of all processes one after the other, in every process; nothing
/// where one has none to give.
std::optional<std::vector<std::string>> gather_lines(
    Communicator& processes,
    const std::optional<std::vector<std::string>>& own) {
  if (processes.size() == 1)
    return own;
  if (processes.any(!own))
    return std::nullopt;
  std::vector<std::string> all;
  for (int64_t root = 0; root < processes.size(); ++root) {
    std::string text;
    if (root == processes.rank())
      for (const std::string& line : *own)
        text += line + '\0';  // translations are text, which has none
    text = broadcast_text(processes, std::move(text), root);
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = text.find('\0', begin);
      all.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  return all;
}

/// Translates the sources [begin, end).
std::optional<std::vector<std::string>> translate_lines(
    const Translator& translator,
    const std::vector<TranslationRequest>& sources,
    size_t begin,
    size_t end,
    const ValidationStop& stop) {
  std::vector<std::string> hypotheses;
  for (size_t i = begin; i < end && !stop.asked(); i += kLinesAtATime) {
    const auto first = sources.begin() + static_cast<int64_t>(i);
    const size_t count = std::min(kLinesAtATime, end - i);
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
  }
  return hypotheses;
}

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
    Communicator& processes,
    const ValidationStop& stop) {
  at::NoGradGuard no_grad;
  at::Tensor device_sums =  // [2], read once
      at::zeros({2}, at::dtype(at::kDouble).device(model.device()));
  int64_t target_tokens = 0;
  for (int64_t i = processes.rank(); i < batches.size() && !stop.asked();
       i += processes.size()) {
    const Batch batch = batches.batch(i);
    DropoutPlan evaluation;
    const ops::CrossEntropySums sums = model.loss(batch, loss, evaluation);
    device_sums.add_(at::stack({sums.loss, sums.nll}));
    target_tokens += batch.target_tokens;
  }
  stop.agree();
  const at::Tensor sums = ops::to_host(device_sums);
  const double* sum = sums.const_data_ptr<double>();
  double all[] = {sum[0], sum[1], static_cast<double>(target_tokens)};
  processes.sum(all);
  return corpus_loss(all[0], all[1], static_cast<int64_t>(all[2]));
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
    Communicator& processes,
    const ValidationStop& stop) {
  TranslatorOptions options;
  options.search = search;
  options.search.n_best = 1;
  const Translator translator(make_system(model), options);
  const size_t lines = text.sources.size();
  const auto rank = static_cast<size_t>(processes.rank());
  const auto size = static_cast<size_t>(processes.size());
  const auto own = translate_lines(
      translator,
      text.sources,
      lines * rank / size,
      lines * (rank + 1) / size,
      stop);
  stop.agree();
  return gather_lines(processes, own);
}

}  // namespace seqconv
