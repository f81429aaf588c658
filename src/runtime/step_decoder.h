#pragma once

#include <memory>
#include <vector>

#include "runtime/model.h"
#include "runtime/word_lists.h"
#include "search/step_decoder.h"
#include "seqconv/requests.h"

namespace seqconv::internal::runtime {

/// The memory that a decoder works in.
struct DecoderMemory {
  std::shared_ptr<WorkspacePool> pool;
  int64_t logits_bytes = RuntimeOptions().logits_bytes;  ///< see RuntimeBackends
};

/// A decoder of the translations of sources, at least one, by models of one
/// target vocabulary that vote: the logarithm of their mean probability. Where
/// `words` are given, each sentence has those of its list alone. How much
/// memory there is changes no number.
std::unique_ptr<StepDecoder> make_step_decoder(
    std::vector<std::shared_ptr<const TranslationModel>> models,
    const std::vector<std::vector<int32_t>>& sources,
    DecoderMemory memory,
    std::unique_ptr<const WordLists> words = nullptr);

}  // namespace seqconv::internal::runtime
