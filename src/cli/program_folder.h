#pragma once

#include <filesystem>

namespace seqconv::internal::cli {

/// The folder in which the program's file lies.
std::filesystem::path program_folder();

}  // namespace seqconv::internal::cli
