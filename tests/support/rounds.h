#pragma once

#include <algorithm>
#include <cstdlib>

namespace seqconv::testing {

/// Rounds of a test that makes its input up at random: a quarter of `thorough`,
/// all of them where SEQCONV_THOROUGH is set (tools/check_long.sh fuzz).
inline int rounds(int thorough) {
  return std::getenv("SEQCONV_THOROUGH") != nullptr ? thorough
                                                    : std::max(thorough / 4, 1);
}

}  // namespace seqconv::testing
