#pragma once

#include <cstdint>
#include <filesystem>

namespace seqconv::internal {

/// Counts the threads that are meant by a number that was asked for: 0 is one
/// for each core. More than four a core would stop the machine with waiting for
/// each other; a warning says that fewer are used.
int64_t thread_count(int64_t asked);

/// Cores that this process may use: those that it may run on, or as many as its
/// control groups leave it, rounded up; one at least.
int64_t usable_cores();

/// The processors' time that control groups leave a process, in processors,
/// rounded up; 0: no limit. Reads versions 2 (cpu.max) and 1
/// (cpu.cfs_quota_us). groups: what /proc/self/cgroup is, root: what
/// /sys/fs/cgroup is.
int64_t processors_of_groups(
    const std::filesystem::path& groups, const std::filesystem::path& root);

}  // namespace seqconv::internal
