#pragma once

#include "base/json.h"
#include "train/options.h"

namespace seqconv::internal {

/// UsageError when a run that began with `stored` cannot go on with `present`
/// (both as write_options gives them): names the first key that differs and
/// would change the numbers. Limits, logging, checkpoints, search and file
/// names may change; the content of the data is compared elsewhere.
void check_same_settings(const Json& stored, const Json& present);

/// What `present` (as write_options gives it) means for the run whose state
/// holds `settings`: "config", how it began, and "text", the options of the
/// text that it has. The two differ where the text came with another model
/// (--init-from); either may be given again, and what comes back is "config"'s.
/// UsageError as by check_same_settings.
Json resumed_settings(const Json& settings, Json present);

/// UsageError naming the key when parameters of a model with architecture
/// `given` do not fit one with `wanted`. Dropouts may differ, and so may two
/// spellings of the same layers.
void check_same_architecture(
    const ModelOptions& wanted, const ModelOptions& given, const std::string& where);

}  // namespace seqconv::internal
