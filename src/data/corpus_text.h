#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "seqconv/data/line_encoder.h"
#include "seqconv/text/unicode.h"

/// What the corpora do alike while they read text.
namespace seqconv {

/// Encodes the line that `reader` gave last; an Error gets its file and line in
/// front, an interruption passes as it is.
std::vector<int32_t> encode_line(
    const LineEncoder& encode,
    const std::string& line,
    const LineReader& reader);

/// The names of files for a message: 'a', 'b'.
std::string list_files(const std::vector<std::string>& files);

}  // namespace seqconv
