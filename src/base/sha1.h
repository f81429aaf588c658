#pragma once

#include <string>
#include <string_view>

namespace seqconv::internal {

/// The SHA-1 digest (FIPS 180-4, 6.1) of `text` as 40 hexadecimal digits. It
/// names files here; it protects nothing.
std::string sha1_hex(std::string_view text);

}  // namespace seqconv::internal
