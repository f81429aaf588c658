#pragma once

#include <string>
#include <string_view>

namespace seqconv::internal {

/// The form in which PCRE2 reads a regular expression of Python's re as that does: `{,n}`
/// and `{,}` as repetitions, `\uXXXX`, `\UXXXXXXXX`, `\v` and `\Z`, and `\s` and `\S` as
/// str.isspace (is_space). All else is left as it is.
std::string to_pcre2(std::string_view expression);

}  // namespace seqconv::internal
