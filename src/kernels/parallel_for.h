#pragma once

#include <cstdint>
#include <functional>

namespace seqconv::internal::kernels {

/// Runs body(begin, end) over a partition of [0, count), perhaps in several
/// threads; each chunk holds at least `grain` items where there are as many.
/// Injected into every kernel, so that kernels own no threads.
using ParallelFor = std::function<void(
    int64_t count, int64_t grain, const std::function<void(int64_t begin, int64_t end)>& body)>;

}  // namespace seqconv::internal::kernels
