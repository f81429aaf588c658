#include "base/own_device.h"

#include <unistd.h>

#include <array>
#include <fstream>
#include <map>

#include "base/error.h"

namespace seqconv::internal {

int64_t own_cuda_device(int64_t visible, int64_t local_rank, bool chosen) {
  if (local_rank < visible)
    return local_rank;
  if (visible == 1 && chosen)
    return 0;
  fail(
      "process ",
      local_rank,
      " of this machine needs CUDA device ",
      local_rank,
      ", but ",
      visible == 1 ? "there is only cuda:0" : concat("there are cuda:0 to cuda:", visible - 1),
      ": start no more processes on a machine than it has GPUs");
}

std::string shared_device_fault(const std::vector<std::string>& devices) {
  std::map<std::string, size_t> owners;
  for (size_t rank = 0; rank < devices.size(); ++rank) {
    const auto [owner, is_new] = owners.try_emplace(devices[rank], rank);
    if (!is_new)
      return concat(
          "each process has a GPU of its own, but ranks ",
          owner->second,
          " and ",
          rank,
          " both have ",
          devices[rank].substr(0, devices[rank].find('\n')),
          ": set training.device to cuda, start no more processes on a machine than it has GPUs, "
          "and where CUDA_VISIBLE_DEVICES is set, let it show all of these to each process, or "
          "another one to each");
  }
  return "";
}

std::string machine_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  // Machines that were copied may all have one name.
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  return concat(name.data(), "\n", boot);
}

}  // namespace seqconv::internal
