#include "train/processes/processes.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "base/library_path.h"
#include "base/log.h"
#include "base/own_device.h"
#include "libtorch/backend/device.h"
#include "train/agreement.h"
#include "train/processes/communicator_module.h"

namespace seqconv::internal {
namespace {

/// A library with a communicator, and what messages call it.
struct Library {
  const char* file;
  const char* name;
  const char* remedy;
};

constexpr Library kMpi{
    "libseqconv_mpi.so", "MPI", "build with -DSEQCONV_MPI=ON, or start one process"};
constexpr Library kNccl{
    "libseqconv_nccl.so",
    "NCCL, by which several processes train on GPUs",
    "build with -DSEQCONV_CUDA=ON -DSEQCONV_NCCL=ON, start one process, or set training.device to "
    "cpu"};

Launch own_launch() {
  return find_launch([](const char* name) { return std::getenv(name); });
}

const CommunicatorModule& load_module(const Library& wanted, const Launch& launch) {
  const auto here = reinterpret_cast<const void*>(&open_communicator);
  const std::filesystem::path path = beside_library_of(here, wanted.file);
  const std::string started = started_text(launch) + ", but ";
  if (!std::filesystem::exists(path))
    fail(
        started,
        "this build has no ",
        wanted.name,
        ": there is no '",
        path.string(),
        "'; ",
        wanted.remedy);
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    fail(started, path.string(), " cannot be loaded: ", ::dlerror());
  using Entry = const CommunicatorModule* (*)();
  const auto entry = reinterpret_cast<Entry>(::dlsym(library, "seqconv_communicator"));
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

/// Processes that find each other when the device is known: they know who they
/// are, and no more.
class SilentProcesses : public SingleProcess {
 public:
  explicit SilentProcesses(Launch launch) : launch_(std::move(launch)) {}

  int64_t rank() const override { return launch_.rank; }
  int64_t size() const override { return launch_.size; }
  int64_t local_size() const override { return launch_.local_size; }
  int64_t local_rank() const override { return launch_.local_rank; }
  /// Their starter ends the others.
  void abort(int code) override { std::_Exit(code); }

 private:
  Launch launch_;
};

bool can_speak(const Communicator& processes) {
  return dynamic_cast<const SilentProcesses*>(&processes) == nullptr;
}

std::shared_ptr<Communicator> open_mpi(const Launch& launch) {
  auto processes = load_module(kMpi, launch).open({.launch = launch});
  if (processes->size() != launch.size)
    fail_usage(
        started_text(launch),
        ", but MPI finds ",
        processes->size(),
        ": start them with Open MPI's mpirun, or with srun --mpi=pmix");
  return processes;
}

/// "auto" may find different things on different machines.
void check_same_kind(Communicator& processes, at::Device device) {
  const std::string first = broadcast_text(processes, device.is_cpu() ? "the CPU" : "a GPU", 0);
  const bool differs = (first == "the CPU") != device.is_cpu();
  fail_together(
      processes,
      !differs ? ""
               : concat(
                     "the processes of a run train on one kind of device, but training.device is ",
                     device.is_cpu() ? "the CPU" : "a GPU",
                     " in rank ",
                     processes.rank(),
                     " and ",
                     first,
                     " in rank 0"));
}

/// UsageError in all processes when two of them have one device.
void check_own_devices(Communicator& processes, const std::string& own) {
  std::vector<std::string> all;
  for (int64_t rank = 0; rank < processes.size(); ++rank)
    all.push_back(broadcast_text(processes, own, rank));
  const std::string fault = shared_device_fault(all);
  if (!fault.empty())
    fail_usage(fault);
}

}  // namespace

std::shared_ptr<Communicator> open_communicator() {
  const Launch launch = own_launch();
  if (launch.size == 1)
    return std::make_shared<SingleProcess>();
  if (launch.size == 0) {
    give_way(launch.rank);
    fail_usage(
        started_text(launch),
        ": processes train together when Open MPI's mpirun starts them, or srun --mpi=pmix, and on "
        "GPUs also torchrun");
  }
  if (launch.has_meeting_place)
    return std::make_shared<SilentProcesses>(launch);
  try {
    return open_mpi(launch);
  } catch (const Error&) {
    give_way(launch.rank);
    throw;
  }
}

std::shared_ptr<Communicator> open_on_device(
    std::shared_ptr<Communicator> processes, at::Device device) {
  if (processes->size() == 1)
    return processes;
  const Launch launch = own_launch();
  const bool speaking = can_speak(*processes);
  if (speaking)
    check_same_kind(*processes, device);
  else if (device.is_cpu())
    fail_usage(
        started_text(launch),
        ", but on CPUs processes train together through MPI: mpirun -np ",
        launch.size,
        " seqconv train ...");
  if (!device.is_cuda())
    return processes;
  const std::string place = device_place(device);
  if (speaking)
    check_own_devices(*processes, place);
  return load_module(kNccl, launch)
      .open(
          {.launch = launch,
           .host = speaking ? std::move(processes) : nullptr,
           .cuda_device = device.index(),
           .cuda_place = place});
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
    // All leave together, or the first alone: it speaks, and ends the others.
    const bool all = dynamic_cast<const Interrupted*>(&error) != nullptr;
    const bool may_speak = give_way(processes.rank(), std::chrono::seconds(all ? 30 : 2));
    if (all && !may_speak)
      std::_Exit(error.exit_code());  // the first has spoken, and ends this one
    if (may_speak && (processes.is_first() || !all))
      log_end(error);
    processes.abort(error.exit_code());
    throw;
  }
}

}  // namespace seqconv::internal
