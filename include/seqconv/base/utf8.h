#pragma once

#include <cstddef>
#include <string_view>

namespace seqconv {

/// The number of bytes at the front of `text` that are well-formed UTF-8
/// (Unicode 15, table 3-7: no surrogates, no overlong forms, up to U+10FFFF);
/// text.size() when all of it is.
size_t valid_utf8_prefix(std::string_view text);

}  // namespace seqconv
