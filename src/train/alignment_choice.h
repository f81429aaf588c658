#pragma once

#include "libtorch/models/translation_model.h"
#include "search/alignment_options.h"
#include "text/corpus/samples.h"

namespace seqconv::internal {

/// Tells how well a choice of looks agrees with the word alignment.
struct AlignmentAgreement {
  AlignmentOptions options;
  double f1 = 0;  ///< of pairs of tokens
};

/// Chooses which looks of a model at the source make its alignments: a head, or the mean of
/// all, of a layer, at the step that makes a token or the one that reads it. The pairs
/// that they give on some of the `judged` samples agree best with those of a WordAligner
/// that learns from some of the training samples. Equal samples give equal choices.
AlignmentAgreement choose_alignment(
    const TranslationModelImpl& model, const SampleSource& training, const SampleSource& judged);

}  // namespace seqconv::internal
