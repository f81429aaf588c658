#pragma once

#include <string>
#include <string_view>

namespace seqconv::internal {

/// The text as one line for every reader, always valid UTF-8: ill-formed bytes
/// as U+FFFD, control characters (line ends, tabs and NUL among them) and
/// Unicode's line and paragraph separators as blanks.
std::string one_line(std::string_view text);

}  // namespace seqconv::internal
