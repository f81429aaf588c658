#pragma once

#include <string_view>

namespace seqconv::internal {

/// A file of src/serve/assets/, which the program holds (tools/make_assets.py).
struct Asset {
  std::string_view name;  ///< without folders
  std::string_view content;
  std::string_view tag;  ///< another one for other content
};

/// The file of this name; null where there is none.
const Asset* find_asset(std::string_view name);

}  // namespace seqconv::internal
