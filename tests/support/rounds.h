#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace seqconv::internal::testing {

/// Rounds of a test that makes its input up at random: a quarter of `all`,
/// all of them where SEQCONV_THOROUGH is set (tools/check_long.sh fuzz).
inline bool thorough() {
  return std::getenv("SEQCONV_THOROUGH") != nullptr;
}
inline int rounds(int all) {
  return thorough() ? all : std::max(all / 4, 1);
}

/// Runs what a case has to try of `types`: all of it, but with ASan, in which
/// each takes twenty times as long, one that `turn` picks, unless
/// SEQCONV_THOROUGH is set. Cases next to each other have turns next to each
/// other.
template <class... Try>
void in_turn(int64_t turn, const Try&... types) {
#ifdef __SANITIZE_ADDRESS__
  const bool all = thorough();
#else
  constexpr bool all = true;
#endif
  int64_t at = 0;
  const auto picked = [&] { return all || turn % static_cast<int64_t>(sizeof...(Try)) == at++; };
  (void)((picked() ? types() : void()), ...);
}

}  // namespace seqconv::internal::testing
