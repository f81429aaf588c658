#include "seqconv/kernels/packed_linear.h"
#include "seqconv/runtime/runtime.h"

namespace seqconv {
namespace {

/// Processors of AMD multiply bfloat16 twice as fast as float32; of Intel, some
/// take twice as long.
bool is_quick_in_bfloat16() {
#if defined(__x86_64__)
  return __builtin_cpu_is("amd") &&
      kernels::best_linear_target(kernels::WeightType::kBfloat16).dot;
#else
  return false;
#endif
}

}  // namespace

kernels::WeightType weight_type(
    ComputeType compute,
    kernels::WeightType stored) {
  using kernels::WeightType;
  switch (compute) {
    case ComputeType::kModel:
      return stored;
    case ComputeType::kAuto:
      return stored == WeightType::kFloat32 && is_quick_in_bfloat16()
          ? WeightType::kBfloat16
          : stored;
    case ComputeType::kFloat32:
      return WeightType::kFloat32;
    case ComputeType::kBfloat16:
      return WeightType::kBfloat16;
    case ComputeType::kInt8:
      return WeightType::kInt8;
  }
  return stored;
}

}  // namespace seqconv
