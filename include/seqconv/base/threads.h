#pragma once

#include <cstdint>

namespace seqconv {

/// How many threads are meant by a number that was asked for: 0 is one for each
/// core. More than four a core would stop the machine with waiting for each
/// other; a warning says that fewer are used.
int64_t thread_count(int64_t asked);

}  // namespace seqconv
