#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace seqconv::internal {

/// Cuts items of the given lengths into groups of similar length, longest
/// first, so that rows x longest length stays within max_tokens (a longer item
/// is alone). With several workers the limit is lowered so that each has about
/// as much to do. Returns positions into `lengths`.
std::vector<std::vector<size_t>> group_by_tokens(
    const std::vector<int64_t>& lengths, int64_t max_tokens, int64_t workers);

}  // namespace seqconv::internal
