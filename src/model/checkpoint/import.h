#pragma once

#include <functional>
#include <string>
#include <vector>

#include "model/checkpoint/fairseq_checkpoint.h"
#include "model/options.h"
#include "text/text_pipeline.h"

namespace seqconv::internal {

/// Says what to import, and what a checkpoint does not say.
struct ImportRequest {
  /// Files of one architecture; the mean of several is imported.
  std::vector<std::string> checkpoints;
  CheckpointWeights weights = CheckpointWeights::kTrained;
  /// Dictionaries, subword files and tokenisation. `joined` is found out.
  TextOptions text;
  /// Reads the [model] section of a preset over the options given; empty: none.
  std::function<void(ModelOptions&)> preset;
  std::string output;  ///< the model folder to write
};

/// Makes a model folder of checkpoints of fairseq or the TaLK repository.
/// Parameters keep their type (float16, bfloat16 or float32; the mean of
/// several is float32) and every bit; tensor by tensor, in memory that does not
/// grow with the model. Says on the log what was decided and why. Errors name
/// the file and list every tensor that is missing or left over; until all is
/// checked nothing is written.
void import_checkpoint(const ImportRequest& request);

}  // namespace seqconv::internal
