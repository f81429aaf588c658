#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace seqconv::internal {

/// Cuts items of the given lengths into groups of similar length, longest
/// first, so that rows x longest length stays within max_tokens (a longer item
/// is alone). With several workers the limit is lowered so that each has about
/// as much to do. No group has more than `most_items`. Returns positions into `lengths`.
std::vector<std::vector<size_t>> group_by_tokens(
    const std::vector<int64_t>& lengths,
    int64_t max_tokens,
    int64_t workers,
    int64_t most_items = std::numeric_limits<int64_t>::max());

/// Items of a group at most, so that no worker waits long for another at the end of a list,
/// whatever a group's length says of its costs: as many groups for each worker, up to eight of at
/// least 64 items, or more of 256, which lose nothing against larger ones. One worker: no limit.
int64_t most_items_of(int64_t items, int64_t workers);

}  // namespace seqconv::internal
