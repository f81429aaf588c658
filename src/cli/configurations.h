#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "model/options.h"

namespace seqconv::internal::cli {

/// Where the configurations lie that come with the program, built or installed.
std::filesystem::path configurations_folder();

/// The file that `name` stands for: itself, or NAME.toml of the configurations
/// that come with the program: "lightconv_iwslt_de_en". A path that is not
/// there is returned as it is, for its reader to say so. UsageError that begins
/// with `what` and lists the names, when it can only be a name and is none.
std::filesystem::path find_configuration(const std::string& what, const std::string& name);

/// What reads the [model] section of the configuration `name`, given as
/// --preset.
std::function<void(ModelOptions&)> read_preset(const std::string& name);

}  // namespace seqconv::internal::cli
