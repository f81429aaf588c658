#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "libtorch/backend/model_folder.h"
#include "libtorch/models/sequence_model.h"
#include "metrics/corpus_metric.h"
#include "pipeline/translator.h"
#include "text/corpus/batcher.h"
#include "text/corpus/pair_corpus.h"
#include "train/options.h"
#include "train/processes/communicator.h"

namespace seqconv::internal {

/// How a validation ends early, with one process or several; by default never.
struct ValidationStop {
  /// Whether this process was asked to stop: it leaves out what remains.
  std::function<bool()> asked = [] { return false; };
  /// Called by all processes at the same places, before they use what they have
  /// together; throws in all when one of them was asked.
  std::function<void()> agree = [] {};
};

/// Losses of a corpus in base 2 per target token, as fairseq prints them.
struct CorpusLoss {
  double loss_base2 = 0;  ///< label-smoothed
  double nll_base2 = 0;
  double perplexity = 0;  ///< 2^nll
  int64_t target_tokens = 0;
};

/// From sums in natural logarithms.
CorpusLoss corpus_loss(double loss, double nll, int64_t target_tokens);

/// Teacher-forced losses without dropout over all batches, of which each
/// process takes its share.
CorpusLoss validation_loss(
    const SequenceModel& model,
    const Batcher& batches,
    const ops::CrossEntropyOptions& loss,
    Communicator& processes,
    const ValidationStop& stop);

/// A metric's score of the validation text's translation.
struct TextScore {
  MetricKind metric{};
  double score = 0;
  std::string signature{};  ///< how it was computed, as `evaluate` tells it
};

/// Validation text as it stands in the files; of binarised data the source's
/// ids and the text of the references'.
struct ValidationText {
  std::vector<TranslationInput> sources;
  std::vector<std::string> references;
};
/// Without the pairs that are left out of the loss.
ValidationText read_validation_text(
    const DataOptions& data, const TranslationText& text, const PairLimits& limits);

/// Looks at the references before anything is trained: warns of metrics that
/// find no words in them. UsageError where the run chooses by a metric that
/// cannot tell outputs apart, as even the references score 0 by it; a run that
/// goes on is warned. Binarised text is not looked at.
void check_validation_text(const TrainConfig& config, bool goes_on);

/// How good the hypotheses are; none: nothing could be translated.
std::vector<TextScore> score_validation_text(
    const std::optional<std::vector<std::string>>& hypotheses,
    const std::vector<std::string>& references,
    const std::vector<MetricKind>& metrics,
    bool lowercase,
    const MetricOptions& options);

/// Translates the sources, each process its share; all get all of them.
/// Nothing, with a warning, when the model gives no finite probability.
std::optional<std::vector<std::string>> translate_validation_text(
    const LoadedModel& model,
    const DecodingOptions& search,
    const ValidationText& text,
    Communicator& processes,
    const ValidationStop& stop);

}  // namespace seqconv::internal
