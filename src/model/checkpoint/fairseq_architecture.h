#pragma once

#include <string>
#include <vector>

#include "model/checkpoint/fairseq_checkpoint.h"
#include "model/options.h"

namespace seqconv::internal {

/// Tells what a checkpoint's model is.
struct DeducedArchitecture {
  Task task = Task::kTranslation;
  ModelOptions options;
  /// "key = value (reason)", a line a decision.
  std::vector<std::string> decisions;
};

/// The architecture of a checkpoint of LightConv, DynamicConv or TaLK: from the
/// shapes of its tensors, the stored arguments, and where neither can tell from
/// `preset` (or null). Error, naming the file, for another kind of model, for
/// parts that this library does not have, when shapes and arguments contradict
/// each other, and when nothing tells.
DeducedArchitecture deduce_architecture(
    const FairseqCheckpoint& checkpoint, const ModelOptions* preset);

/// The task of a checkpoint: translation when it has an encoder.
Task task_of(const FairseqCheckpoint& checkpoint);

}  // namespace seqconv::internal
