#pragma once

#include <cstdint>
#include <span>

namespace seqconv::internal::metrics {

/// The fewest edits found that make the reference of the hypothesis: words
/// inserted, deleted or replaced, and runs of words moved, one edit each.
/// Tercom's greedy search with its limits, as sacreBLEU 2 has it: runs of up to
/// 10 words whose places are at most 50 apart, at most 1,000 moves tried, and
/// edit distances within 25 cells of the diagonal.
int64_t count_edits(std::span<const uint32_t> hypothesis, std::span<const uint32_t> reference);

}  // namespace seqconv::internal::metrics
