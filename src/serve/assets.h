#pragma once

#include <string_view>

namespace seqconv::internal {

/// A file of src/serve/assets/, which the program holds (tools/make_assets.py), by its name;
/// empty where there is none.
std::string_view find_asset(std::string_view name);

}  // namespace seqconv::internal
