#pragma once

#include <filesystem>

namespace seqconv::cli {

/// The folder in which the program's file lies.
std::filesystem::path program_folder();

}  // namespace seqconv::cli
