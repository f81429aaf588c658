#pragma once

#include <string>

namespace seqconv::internal::cli {

/// Version, compiler and build type; the instruction sets that the operators
/// are compiled for and the one that runs here; which LibTorch is used and
/// where it lies, or why there is none. Loads nothing.
std::string version_text();

}  // namespace seqconv::internal::cli
