#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace seqconv::internal::cli {

/// A script for bash that completes verbs, flags and the names of files and folders.
std::string bash_completion(const CLI::App& app);

}  // namespace seqconv::internal::cli
