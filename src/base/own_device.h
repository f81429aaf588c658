#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// Which CUDA device each of several processes takes.
namespace seqconv::internal {

/// The device, of the `visible` ones (> 0), of the process that has this rank
/// among those of its machine: the one with the number of that rank. That is
/// number 0 for all of them where a batch system has left each process one GPU:
/// `chosen` says that CUDA_VISIBLE_DEVICES is set, without which all see the
/// same. shared_device_fault() tells whether they do all the same. Error where
/// the process has none.
int64_t own_cuda_device(int64_t visible, int64_t local_rank, bool chosen);

/// Says what is wrong where two processes have one device, or "". devices[rank]
/// names the one that a process has; what follows a line break in it counts,
/// but is not told.
std::string shared_device_fault(const std::vector<std::string>& devices);

/// A name of this machine for such names, and what tells it from others of that
/// name, behind a line break.
std::string machine_name();

}  // namespace seqconv::internal
