#include "train/device_checks.h"

#include "base/error.h"

namespace seqconv::internal {
namespace {

/// From where on a CUDA device computes in that precision: below, LibTorch
/// imitates its arithmetic, slowly, or has no product of it.
ComputeCapability needed_capability(Precision precision) {
  switch (precision) {
    case Precision::kBFloat16:
      return {8, 0};
    case Precision::kFloat16:
      return {5, 3};
    case Precision::kFloat32:
      break;
  }
  return {};
}

std::string text_of(ComputeCapability capability) {
  return concat(capability.major, ".", capability.minor);
}

}  // namespace

std::string precision_fault(Precision precision, at::Device device, ComputeCapability capability) {
  if (precision == Precision::kFloat16 && device.is_cpu())
    return "training.precision is \"float16\", but the model is trained on the CPU, which has "
           "float32 and bfloat16 alone: set training.precision to one of them, or training.device "
           "to a CUDA device";
  const ComputeCapability needed = needed_capability(precision);
  if (!device.is_cuda() || capability >= needed)
    return "";
  const bool has_float16 = capability >= needed_capability(Precision::kFloat16);
  return concat(
      "training.precision is \"",
      enum_name(precision),
      "\", which needs a CUDA device of compute capability ",
      text_of(needed),
      " or above, but the model is trained on ",
      device.str(),
      " of compute capability ",
      text_of(capability),
      ": set training.precision to float32",
      has_float16 ? " or float16" : "",
      ", or training.device to a device that has ",
      enum_name(precision));
}

}  // namespace seqconv::internal
