#pragma once

#include <string>

#include "base/options.h"
#include "model/options.h"

namespace seqconv::internal {

/// What fairseq's translation task is told of a model.
struct TaskSettings {
  std::string source_language;  ///< "" when it is not known
  std::string target_language;
  int64_t max_source_tokens = 0;  ///< longer sources are cut; 0: none
};

/// The "cfg" of a checkpoint of this model: its parts "model" and "task" under
/// the names of fairseq's arguments. UsageError for what these cannot say:
/// layers of one side that differ in more than their kernels, heads of
/// convolutions other than those of attention, another activation than that of
/// the blocks.
Json fairseq_settings(const ModelOptions& options, Task task, const TaskSettings& settings);

/// True for a model of TaLK convolutions.
bool is_talk(const ModelOptions& options);

}  // namespace seqconv::internal
