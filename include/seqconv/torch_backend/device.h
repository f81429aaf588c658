#pragma once

#include <c10/core/Device.h>

#include <cstdint>

#include "seqconv/base/device_name.h"

namespace seqconv {

/// The device of that name, ready for models: its operators are loaded, and it
/// is LibTorch's present one in this thread. A CUDA device without a number is
/// that of the process among those of its machine, `local_rank`. "auto" is the
/// CPU where there is no such device. Error that says what is there when it is
/// not, and when this build has no CUDA operators.
at::Device open_device(const DeviceName& name, int64_t local_rank = 0);

/// Whether open_device has a CUDA device to open.
bool sees_cuda();

}  // namespace seqconv
