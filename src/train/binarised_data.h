#pragma once

#include <string>
#include <vector>

#include "text/text_pipeline.h"
#include "train/options.h"

/// What a run does otherwise where its files are fairseq's binarised data
/// (docs/data.md) and not text.
namespace seqconv::internal {

/// UsageError naming the keys when a file of [data] is binarised and [text]
/// leaves something to be learned: ids teach no subwords and no dictionary, and
/// learned ones would not be those of the ids.
void check_named_text(const TrainConfig& config);

/// Those of the files that are text.
std::vector<TextSource> text_files(const std::vector<TextSource>& files);

/// Whether a sentence of the binarised files holds <unk>.
bool binarised_unknown(const std::vector<TextSource>& files, int64_t vocabulary);

/// Lines for the self-test of a model folder: the text of a few sentences of
/// the binarised files which, encoded again, have the ids that stand there.
/// None when there are no such sentences.
std::vector<std::string> binarised_samples(
    const std::vector<TextSource>& files, const TextPipeline& text);

}  // namespace seqconv::internal
