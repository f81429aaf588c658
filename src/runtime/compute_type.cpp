#include "kernels/packed_linear.h"
#include "runtime/runtime_backends.h"

namespace seqconv::internal {
namespace {

/// The matrix unit is; AMD's sums of products take half as long as float32's,
/// those of some of Intel's processors twice as long.
bool is_quick_in_bfloat16() {
  using kernels::NarrowProducts;
  const NarrowProducts way = kernels::best_linear_target(kernels::WeightType::kBfloat16).narrow;
#if defined(__x86_64__)
  if (way == NarrowProducts::kDot)
    return __builtin_cpu_is("amd");
#endif
  return way == NarrowProducts::kTiles;
}

}  // namespace

kernels::WeightType weight_type(ComputeType compute, kernels::WeightType stored) {
  using kernels::WeightType;
  switch (compute) {
    case ComputeType::kModel:
      return stored;
    case ComputeType::kAuto:
      return stored == WeightType::kFloat32 && is_quick_in_bfloat16() ? WeightType::kBfloat16
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

}  // namespace seqconv::internal
