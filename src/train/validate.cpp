#include "train/validate.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

#include "base/characters.h"
#include "base/log.h"
#include "libtorch/backend/backend.h"
#include "libtorch/nn/dropout_plan.h"
#include "libtorch/ops/device.h"
#include "metrics/missing_words.h"
#include "pipeline/limit_count.h"
#include "text/corpus/fairseq_data.h"
#include "text/corpus/sentence_reader.h"
#include "text/documents.h"
#include "train/agreement.h"

namespace seqconv::internal {
namespace {

constexpr size_t kLinesAtATime = 256;

/// The lines of all processes one after the other, in every process; nothing
/// where one has none to give.
std::optional<std::vector<std::string>> gather_lines(
    Communicator& processes, const std::optional<std::vector<std::string>>& own) {
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
    const std::vector<TranslationInput>& sources,
    size_t begin,
    size_t end,
    const ValidationStop& stop) {
  LimitCount limits;
  std::vector<std::string> hypotheses;
  for (size_t i = begin; i < end && !stop.asked(); i += kLinesAtATime) {
    const auto first = sources.begin() + static_cast<int64_t>(i);
    const size_t count = std::min(kLinesAtATime, end - i);
    const std::vector<TranslationInput> requests(first, first + static_cast<int64_t>(count));
    const auto results = translator.translate(requests, {.stop = stop.asked});
    if (stop.asked())
      break;
    for (const TranslationOutcome& result : results) {
      if (!result.error.empty()) {
        log_warning("nothing can be translated: ", result.error);
        return std::nullopt;
      }
      hypotheses.push_back(result.translations.front().text);
      limits.add(result);
    }
  }
  if (const std::string warning = limits.warning("decoding"); !warning.empty())
    log_warning("validation: ", warning);
  return hypotheses;
}

/// The references that are text, blank ones left out.
std::vector<std::string> text_references(const PairSources& pairs) {
  std::vector<std::string> references;
  for (const TextSource& file : pairs.target) {
    if (holds_ids(file))
      continue;
    TextSourceReader reader(file);
    for (std::string line; reader.next(line);)
      if (!is_blank(line))
        references.push_back(sentence_lines(line));
  }
  return references;
}

/// Whether even the references themselves score 0, of which larger is better.
bool tells_nothing(
    MetricKind kind, const std::vector<std::string>& references, const TrainConfig& config) {
  const auto metric = make_metric(kind, config.text.lowercase, config.metrics);
  if (!metric->larger_is_better())
    return false;
  for (const std::string& reference : references)
    metric->add(reference, {reference});
  return metric->score() == 0;
}

/// What else helps where words of a metric are missing.
const char* words_hint(MetricKind kind) {
  return kind == MetricKind::kBleu
      ? "; 'chrf' in training.best_by or training.validate_metrics counts characters"
      : "";
}

}  // namespace

CorpusLoss corpus_loss(double loss, double nll, int64_t target_tokens) {
  const double per_token =
      1 / (std::numbers::ln2 * static_cast<double>(std::max<int64_t>(target_tokens, 1)));
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
  for (int64_t i = processes.rank(); i < batches.size() && !stop.asked(); i += processes.size()) {
    const Batch batch = batches.batch(i);
    DropoutPlan evaluation;
    const ops::CrossEntropySums sums = model.loss(batch, {loss}, evaluation);
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
    const DataOptions& data, const TranslationText& text, const PairLimits& limits) {
  ValidationText read;
  const PairSources pairs = data.validation_pairs();
  for (size_t i = 0; i < pairs.source.size(); ++i) {
    SentenceReader sources(pairs.source[i], text.source->vocabulary().size());
    SentenceReader targets(pairs.target[i], text.target->vocabulary().size());
    while (sources.next()) {
      SEQCONV_CHECK(
          targets.next(),
          pairs.target[i].file,
          ": the validation text was changed while the run went on");
      std::vector<int32_t> source = encode_sentence(sources, *text.source);
      std::vector<int32_t> target = encode_sentence(targets, *text.target);
      std::string reference = targets.is_text() ? targets.line() : text.target->decode(target);
      TranslationInput request{{.text = sources.line()}};
      if (!sources.is_text())
        request.ids = source;
      if (cut_pair(source, target, limits) != PairFate::kKept)
        continue;
      read.sources.push_back(std::move(request));
      read.references.push_back(std::move(reference));
    }
  }
  return read;
}

void check_validation_text(const TrainConfig& config, bool goes_on) {
  const std::vector<MetricKind> metrics = config.training.metrics();
  if (config.task != Task::kTranslation || metrics.empty())
    return;
  const std::vector<std::string> references = text_references(config.data.validation_pairs());
  if (references.empty())
    return;
  const auto best = config.training.best_metric();
  std::set<std::string> told;  // several metrics may miss the same words
  for (const MetricKind metric : metrics) {
    const std::string missing = missing_words(references, metric, config.metrics);
    if (metric == best && tells_nothing(metric, references, config)) {
      const std::string fault = concat(
          "training.best_by = '",
          config.training.best_by,
          "' cannot tell outputs apart: even the references of the validation text score 0 by it",
          missing.empty() ? "" : ", as ",
          missing);
      if (!goes_on)
        fail_usage(fault);
      log_warning(fault);
    } else if (!missing.empty() && told.insert(missing).second) {
      log_warning(missing, words_hint(metric));
    }
  }
}

std::vector<TextScore> score_validation_text(
    const std::optional<std::vector<std::string>>& hypotheses,
    const std::vector<std::string>& references,
    const std::vector<MetricKind>& metrics,
    bool lowercase,
    const MetricOptions& options) {
  std::vector<TextScore> scores;
  for (const MetricKind kind : metrics) {
    const auto metric = make_metric(kind, lowercase, options);
    for (size_t i = 0; i < references.size(); ++i)
      metric->add(
          hypotheses ? sentence_lines((*hypotheses)[i]) : "", {sentence_lines(references[i])});
    scores.push_back({kind, metric->score(), metric->signature()});
  }
  return scores;
}

std::optional<std::vector<std::string>> translate_validation_text(
    const LoadedModel& model,
    const DecodingOptions& search,
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
      translator, text.sources, lines * rank / size, lines * (rank + 1) / size, stop);
  stop.agree();
  return gather_lines(processes, own);
}

}  // namespace seqconv::internal
