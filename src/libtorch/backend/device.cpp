#include "libtorch/backend/device.h"

#include <ATen/Context.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/library_path.h"
#include "base/own_device.h"
#include "libtorch/ops/device.h"

namespace seqconv::internal {
namespace {

std::filesystem::path operators_path() {
  const auto address = reinterpret_cast<const void*>(&ops::to_device);
  return beside_library_of(address, "libseqconv_ops_cuda.so");
}

/// LibTorch's CUDA half, beside the half that is here. Nothing else asks for
/// it: without it LibTorch knows of no device.
std::filesystem::path torch_cuda_path() {
  const auto address = reinterpret_cast<const void*>(&at::globalContext);
  return beside_library_of(address, "libtorch_cuda.so");
}

/// Loads LibTorch's CUDA and the operators for it; says why it cannot, or "".
/// LibTorch asks for its CUDA once: nothing may have asked before.
const std::string& load_cuda() {
  static const std::string problem = [] {
    const std::filesystem::path path = operators_path();
    if (!std::filesystem::exists(path))
      return concat(
          "this build has no operators for CUDA devices, there is no '",
          path.string(),
          "': build with --preset cuda");
    for (const auto& library : {torch_cuda_path(), path})
      if (::dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr)
        return concat("CUDA cannot be loaded: ", ::dlerror());
    return std::string();
  }();
  return problem;
}

int64_t cuda_devices() {
  if (!load_cuda().empty() || !at::globalContext().hasCUDA())
    return 0;
  return c10::impl::getDeviceGuardImpl(at::kCUDA)->deviceCount();
}

at::Device cuda_device(int64_t index) {
  return {at::kCUDA, static_cast<c10::DeviceIndex>(index)};
}

at::Device open_cuda(const DeviceName& name, int64_t local_rank) {
  const int64_t devices = cuda_devices();
  const std::string asked = name.index < 0 ? "cuda" : concat("cuda:", name.index);
  if (!load_cuda().empty())
    fail("device '", asked, "' was asked for, but ", load_cuda());
  SEQCONV_CHECK(
      devices > 0,
      "device '",
      asked,
      "' was asked for, but no CUDA device is to be seen (nvidia-smi lists those of the machine, "
      "CUDA_VISIBLE_DEVICES may hide some)");
  SEQCONV_CHECK(
      name.index < devices,
      "device '",
      asked,
      "' was asked for, but ",
      devices == 1 ? "there is only cuda:0" : concat("there are cuda:0 to cuda:", devices - 1));
  const bool chosen = std::getenv("CUDA_VISIBLE_DEVICES") != nullptr;
  const int64_t index = name.index < 0 ? own_cuda_device(devices, local_rank, chosen) : name.index;
  const at::Device device = cuda_device(index);
  ops::set_cuda_defaults();
  c10::impl::getDeviceGuardImpl(at::kCUDA)->setDevice(device);
  return device;
}

/// Calls a function of CUDA's runtime, which came with LibTorch's half. Its
/// last parameter is the device.
template <class... Arguments>
void ask_cuda(const char* name, at::Device device, Arguments... arguments) {
  using Function = int (*)(Arguments..., int);
  const auto call = reinterpret_cast<Function>(::dlsym(RTLD_DEFAULT, name));
  SEQCONV_CHECK(call != nullptr, "CUDA has no function '", name, "'");
  const int status = call(arguments..., device.index());
  SEQCONV_CHECK(
      status == 0, "CUDA says nothing of ", device.str(), ": error ", status, " of ", name);
}

/// The value of a cudaDeviceAttr.
int cuda_attribute(int attribute, at::Device device) {
  int value = 0;
  ask_cuda("cudaDeviceGetAttribute", device, &value, attribute);
  return value;
}

}  // namespace

ComputeCapability compute_capability(at::Device device) {
  // cudaDevAttrComputeCapabilityMajor and Minor.
  return {cuda_attribute(75, device), cuda_attribute(76, device)};
}

std::string device_place(at::Device device) {
  std::string name = device.str();
  if (device.index() < cuda_devices()) {
    std::array<char, 64> address{};  // on the bus, as nvidia-smi has it
    ask_cuda("cudaDeviceGetPCIBusId", device, address.data(), 64);
    name = concat("GPU ", address.data());
  }
  return concat(name, " of ", machine_name());
}

bool sees_cuda() {
  return cuda_devices() > 0;
}

at::Device open_device(const DeviceName& name, int64_t local_rank) {
  switch (name.kind) {
    case DeviceName::Kind::kAuto:
      return sees_cuda() ? open_cuda({}, local_rank) : at::kCPU;
    case DeviceName::Kind::kCpu:
      return at::kCPU;
    case DeviceName::Kind::kCuda:
      return open_cuda(name, local_rank);
  }
  fail("unknown kind of device");
}

}  // namespace seqconv::internal
