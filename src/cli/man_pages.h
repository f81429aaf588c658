#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>

namespace seqconv::internal::cli {

/// Pages of man by their files' names: "seqconv.1", and "seqconv-translate.1" for each verb that
/// the help shows. They say what the help says.
std::map<std::string, std::string> man_pages(const CLI::App& app);

}  // namespace seqconv::internal::cli
