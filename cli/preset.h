#pragma once

#include <functional>
#include <string>

#include "seqconv/architecture/options.h"

namespace seqconv::cli {

/// What reads the [model] section of a preset. `name` is a configuration file,
/// or the name of one that comes with the program: "lightconv_iwslt_de_en".
/// Error that lists those when there is none of the name.
std::function<void(ModelOptions&)> read_preset(const std::string& name);

}  // namespace seqconv::cli
