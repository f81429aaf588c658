#pragma once

#include <functional>
#include <memory>

#include "train/processes/communicator.h"

namespace seqconv::internal::testing {

/// What threads that play processes speak through.
enum class Through {
  kMemory,
  kTorch,        ///< a process group of LibTorch's
  kTorchAndHost  ///< the same for buckets and shares alone
};

/// Runs `work` in `size` threads, each with a communicator of its own, as if
/// they were processes. When one throws, those that wait for it are let go, and
/// what it threw comes out here.
void run_in_threads(
    int64_t size,
    const std::function<void(const std::shared_ptr<Communicator>&)>& work,
    Through through = Through::kMemory);

}  // namespace seqconv::internal::testing
