#pragma once

#include <cstdint>

namespace seqconv::internal {

/// Counts the forks that led from the process that loaded the library to this one: what threads
/// or descriptors belong to is told by it. std::bad_alloc where nothing counts them.
uint64_t count_forks();

}  // namespace seqconv::internal
