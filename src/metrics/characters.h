#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace seqconv::metrics {

/// Code points of a UTF-8 text; ill-formed sequences read as U+FFFD.
std::u32string decode_utf8(std::string_view text);
std::string encode_utf8(std::u32string_view text);

/// White space as Python's str.split sees it.
bool is_space(char32_t c);

/// Lower case by Unicode's full mapping in the root locale.
std::string to_lower(std::string_view text);

/// The stretches between white space.
std::vector<std::u32string_view> split_words(std::u32string_view text);

}  // namespace seqconv::metrics
