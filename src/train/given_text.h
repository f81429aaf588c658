#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "text/text_pipeline.h"
#include "train/trainer.h"

namespace seqconv::internal {

/// One side of a text that comes with a model, and what the configuration names
/// as its dictionary.
struct GivenSide {
  const char* key;          ///< "text.source_dictionary"
  const std::string& file;  ///< "" = none
  const TextPipeline& text;
};

/// Checks the [text] section of a run that starts from another model
/// (--init-from), whose text it takes over. UsageError where the configuration
/// asks for other ids: by a key that it gives (request.named_text) and the
/// model has otherwise, or by a file of other symbols, merges or pieces. Keys
/// that only learning reads are named in the log.
void check_given_text(
    const TrainRequest& request, const TextOptions& given, const std::vector<GivenSide>& sides);

/// `text`, the options of a text that came with another model, with those that
/// no folder has: what learning reads, and files. They are as in the
/// training/config.toml of that model or, where it has none, in the run's own
/// configuration: whoever learns anew with them learns what that one did.
Json with_learning_keys(const TrainRequest& request, Json text);

}  // namespace seqconv::internal
