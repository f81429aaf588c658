#pragma once

#include <c10/core/Device.h>

#include <compare>
#include <cstdint>
#include <string>

#include "base/device_name.h"

namespace seqconv::internal {

/// The device of that name, ready for models: its operators are loaded, and it
/// is LibTorch's present one in this thread. A CUDA device without a number is
/// that of the process among those of its machine, `local_rank`
/// (own_cuda_device). "auto" is the
/// CPU where there is no such device. Error that says what is there when it is
/// not, and when this build has no CUDA operators.
at::Device open_device(const DeviceName& name, int64_t local_rank = 0);

/// NVIDIA's number of the generation of a CUDA device: 8.0 is an A100's.
struct ComputeCapability {
  int major = 0;
  int minor = 0;

  auto operator<=>(const ComputeCapability&) const = default;
};

/// The generation of a CUDA device that open_device() gave.
ComputeCapability compute_capability(at::Device device);

/// Tells what a CUDA device that open_device() gave is among all of all
/// machines, whatever number it has in this process, as shared_device_fault()
/// takes it.
std::string device_place(at::Device device);

/// Tells whether open_device has a CUDA device to open.
bool sees_cuda();

}  // namespace seqconv::internal
