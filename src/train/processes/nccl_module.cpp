#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include <cstdlib>

#include "base/error.h"
#include "train/processes/communicator_module.h"
#include "train/processes/rendezvous.h"
#include "train/processes/torch_communicator.h"

namespace seqconv::internal {
namespace {

std::shared_ptr<Communicator> open_nccl(const CommunicatorRequest& request) {
  const Launch& launch = request.launch;
  const Communicator* host = request.host.get();
  const at::Device device(at::kCUDA, static_cast<c10::DeviceIndex>(request.cuda_device));
  const auto variable = [](const char* name) { return std::getenv(name); };
  const auto store = open_store(launch, request.host.get(), variable);
  if (host == nullptr)
    check_own_devices(*store, launch, request.cuda_place);
  auto group = c10::make_intrusive<c10d::ProcessGroupNCCL>(
      store,
      static_cast<int>(host != nullptr ? host->rank() : launch.rank),
      static_cast<int>(launch.size));
  // Now, not in the first update: what NCCL finds wrong is said at once.
  group->eagerConnectSingleDevice(device);
  return std::make_shared<TorchCommunicator>(TorchCommunicatorParts{
      .backend = std::move(group),
      .device = device,
      .host = request.host,
      .local_size = launch.local_size,
      .local_rank = launch.local_rank});
}

const CommunicatorModule kModule{.open = open_nccl};

}  // namespace
}  // namespace seqconv::internal

extern "C" SEQCONV_VISIBLE const seqconv::internal::CommunicatorModule* seqconv_communicator() {
  return &seqconv::internal::kModule;
}
