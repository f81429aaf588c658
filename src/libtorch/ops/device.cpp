#include "libtorch/ops/device.h"

#include <ATen/Context.h>
#include <ATen/DeviceAccelerator.h>
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <string_view>

namespace seqconv::ops {

at::Tensor to_device(const at::Tensor& host, at::Device device) {
  if (host.device() == device)
    return host;
  RECORD_FUNCTION("seqconv::to_device", c10::ArrayRef<const c10::IValue>{});
  if (device.is_cuda() && host.is_cpu())
    return host.pin_memory().to(
        device,
        host.scalar_type(),
        /*non_blocking=*/true);
  return host.to(device);
}

at::Tensor to_host(const at::Tensor& tensor) {
  if (tensor.is_cpu())
    return tensor;
  RECORD_FUNCTION("seqconv::to_host", c10::ArrayRef<const c10::IValue>{c10::IValue(tensor)});
  if (tensor.is_meta())
    return at::zeros(tensor.sizes(), tensor.options().device(at::kCPU));
  return tensor.cpu();
}

void set_cuda_defaults() {
  at::globalContext().setAllowTF32CuDNN(false);
  at::globalContext().setSDPUseCuDNN(false);
}

bool is_out_of_memory(const c10::Error& error) {
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr)
    return true;
  const std::string_view text = error.what_without_backtrace();
  // Libraries have a status each, of which LibTorch knows the name alone.
  const auto names = {
      "_ALLOC_FAILED",
      "_ALLOCATION_FAILED",
      "cudaErrorMemoryAllocation",
      "out of memory",
      "can't allocate memory"};
  return std::any_of(names.begin(), names.end(), [&](std::string_view name) {
    return text.find(name) != std::string_view::npos;
  });
}

void empty_cache(at::Device device) {
  if (!device.is_cpu())
    at::getDeviceAllocator(device.type())->emptyCache();
}

}  // namespace seqconv::ops
