#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace seqconv::internal::metrics {

bool is_ascii(std::string_view text);
bool is_valid_utf8(std::string_view text);

/// Code points of a UTF-8 text; ill-formed sequences read as U+FFFD.
std::u32string decode_utf8(std::string_view text);
std::string encode_utf8(std::u32string_view text);

/// The text with U+FFFD for ill-formed sequences.
std::string valid_utf8(std::string_view text);

/// White space as Python's str.split sees it.
bool is_space(char32_t c);

/// The bytes of the white space character at `at` of a UTF-8 text; 0 where
/// another one stands.
size_t space_length(std::string_view text, size_t at);

/// Lower case by Unicode's full mapping in the root locale.
std::string to_lower(std::string_view text);

/// The text without white space at its start and its end.
std::string_view trim_start(std::string_view text);
std::string_view trim_end(std::string_view text);

/// The stretches between white space.
std::vector<std::string_view> split_words(std::string_view text);

}  // namespace seqconv::internal::metrics
