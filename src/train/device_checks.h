#pragma once

#include <c10/core/Device.h>

#include <string>

#include "libtorch/backend/device.h"
#include "train/options.h"

/// What a run asks of the device that it trains on.
namespace seqconv::internal {

/// What is wrong with training in that precision on the device, or "".
/// `capability` is read for CUDA devices alone.
std::string precision_fault(Precision precision, at::Device device, ComputeCapability capability);

}  // namespace seqconv::internal
