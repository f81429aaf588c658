#pragma once

#include <string>

#include "seqconv/architecture/options.h"
#include "seqconv/base/options.h"

namespace seqconv {

/// The languages of a translation model, empty when they are not known.
struct Languages {
  std::string source;
  std::string target;
};

/// The "cfg" of a checkpoint of this model: its parts "model" and "task" under
/// the names of fairseq's arguments. UsageError for what these cannot say:
/// layers of one side that differ in more than their kernels, heads of
/// convolutions other than those of attention, another activation than that of
/// the blocks.
Json fairseq_settings(
    const ModelOptions& options,
    Task task,
    const Languages& languages);

/// True for a model of TaLK convolutions.
bool is_talk(const ModelOptions& options);

}  // namespace seqconv
