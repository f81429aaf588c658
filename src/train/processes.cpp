#include "seqconv/train/processes.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "seqconv/base/log.h"
#include "seqconv/train/communicator_module.h"

namespace seqconv {
namespace {

constexpr const char* kLibrary = "libseqconv_mpi.so";

/// Beside the library that this function is in.
std::filesystem::path module_path() {
  Dl_info info{};
  const auto address = reinterpret_cast<const void*>(&open_communicator);
  if (::dladdr(address, &info) == 0 || info.dli_fname == nullptr)
    return kLibrary;
  return std::filesystem::path(info.dli_fname).parent_path() / kLibrary;
}

const CommunicatorModule& load_module(const Launch& launch) {
  const std::filesystem::path path = module_path();
  const std::string started = concat(
      launch.starter,
      " has started ",
      launch.size,
      " processes (",
      launch.variable,
      "), but ");
  if (!std::filesystem::exists(path))
    fail(
        started,
        "this build has no MPI: there is no '",
        path.string(),
        "'; build with -DSEQCONV_MPI=ON, or start one process");
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    fail(started, "MPI cannot be loaded: ", ::dlerror());
  using Entry = const CommunicatorModule* (*)();
  const auto entry =
      reinterpret_cast<Entry>(::dlsym(library, "seqconv_communicator"));
  if (entry == nullptr)
    fail(path.string(), " holds no communicator: ", ::dlerror());
  const CommunicatorModule* module = entry();
  if (module->version != kCommunicatorVersion)
    fail(
        path.string(),
        " has interface version ",
        module->version,
        ", but this program needs version ",
        kCommunicatorVersion,
        "; build both again");
  return *module;
}

std::shared_ptr<Communicator> open_mpi(const Launch& launch) {
  if (launch.starter == "torchrun")
    fail_usage(
        "torchrun has started ",
        launch.size,
        " processes (",
        launch.variable,
        "), but on CPUs processes train together through MPI: mpirun -np ",
        launch.size,
        " seqconv train ...");
  auto processes = load_module(launch).open();
  if (processes->size() != launch.size)
    fail_usage(
        launch.starter,
        " has started ",
        launch.size,
        " processes (",
        launch.variable,
        "), but MPI finds ",
        processes->size(),
        ": start them with Open MPI's mpirun, or with srun --mpi=pmix");
  return processes;
}

}  // namespace

std::shared_ptr<Communicator> open_communicator() {
  const Launch launch =
      find_launch([](const char* name) { return std::getenv(name); });
  if (launch.size == 1)
    return std::make_shared<SingleProcess>();
  try {
    return open_mpi(launch);
  } catch (const Error&) {
    give_way(launch.rank);
    throw;
  }
}

int64_t share_of_cores(const Communicator& processes) {
  const int64_t cores = std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN));
  const int64_t share = std::max<int64_t>(cores / processes.local_size(), 1);
  // LibTorch knows what OMP_NUM_THREADS and the binding to cores leave.
  return std::min<int64_t>(share, at::get_num_threads());
}

void run_together(Communicator& processes, const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    if (processes.size() == 1)
      throw;
    give_way(processes.rank());
    const bool all = dynamic_cast<const Interrupted*>(&error) != nullptr;
    if (processes.is_first() || !all)
      log_line(LogLevel::kError, error.what());
    processes.abort(error.exit_code());
    throw;
  }
}

}  // namespace seqconv
