#pragma once

#include "model/checkpoint/fairseq_checkpoint.h"
#include "model/options.h"
#include "text/language_text.h"
#include "text/text_pipeline.h"

namespace seqconv::internal {

/// The text of an imported translation model: dictionaries, joined when they
/// are the same, subwords and tokenisation of `options`. UsageError that names
/// the flag for a dictionary that is missing or of the other task; Error for
/// one that does not fit the checkpoint's embeddings. Pieces that a dictionary
/// lacks are <unk>, as in fairseq, and sources are cut as in its training.
TranslationText import_text(
    TextOptions options, const FairseqCheckpoint& checkpoint, const ModelOptions& model);

/// The same for a language model.
LanguageText import_language_text(TextOptions options, const FairseqCheckpoint& checkpoint);

}  // namespace seqconv::internal
