#pragma once

#include <filesystem>
#include <optional>

#include "seqconv/data/pair_corpus.h"
#include "seqconv/text/text_pipeline.h"
#include "seqconv/train/options.h"

namespace seqconv {

/// The corpora of a run as ids.
struct PreparedData {
  PairCorpus train;
  std::optional<PairCorpus> valid;
  CorpusReport train_report;
  CorpusReport valid_report;
};

/// Encodes training and validation text into `folder`, unless that was done
/// before with the same `inputs` (folder/stamp.json says so): checksums of the
/// text files and of whatever else decides the ids. Stops with Interrupted when
/// a signal asks for it.
PreparedData prepare_data(
    const std::filesystem::path& folder,
    const TrainConfig& config,
    const TranslationText& text,
    const Json& inputs);

/// Error naming the configuration's key whose files have changed.
void check_same_inputs(const Json& stored, const Json& present);

}  // namespace seqconv
