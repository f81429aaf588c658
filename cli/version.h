#pragma once

#include <string>

namespace seqconv::cli {

/// Version, compiler, build type, the LibTorch it was built against and what
/// this processor offers. Loads nothing.
std::string version_text();

}  // namespace seqconv::cli
