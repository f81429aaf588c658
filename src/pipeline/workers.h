#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace seqconv {

/// Calls work(i) for every i below `count`, in up to `workers` threads at a
/// time, the caller's among them; none outlives the call. Items are begun in
/// order. Once one has thrown no other is begun, and when those at work are
/// done the exception of the lowest is thrown: that which one thread alone
/// would have met.
void share_work(
    size_t count,
    int64_t workers,
    const std::function<void(size_t)>& work);

}  // namespace seqconv
