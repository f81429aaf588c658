#pragma once

#include <filesystem>

namespace seqconv::internal {

/// Path of `file` beside the library, or program, that holds `address`, such as
/// that of a function; `file` alone where the loader does not know.
std::filesystem::path beside_library_of(const void* address, const char* file);

}  // namespace seqconv::internal
