#pragma once

#include <ATen/ATen.h>

#include "base/error.h"
#include "support/devices.h"

/// Bounds on max |got - want| / max |want|, by the type of the input.
namespace seqconv::internal::testing {

/// float64: rounding of a few hundred terms. float32: plain float32 evaluation.
/// 16 bits: sums are float32, so half a unit in the last place of the result.
/// A CUDA device works in float32 where float64 is asked for
/// (libtorch/ops/on_device.h).
inline double tolerance(at::ScalarType type) {
  switch (type) {
    case at::kDouble:
      return test_device().is_cpu() ? 1e-12 : 1e-5;
    case at::kFloat:
      return 1e-5;
    case at::kBFloat16:
      return 4e-3;
    case at::kHalf:
      return 1e-3;
    default:
      fail("no tolerance for ", c10::toString(type));
  }
}

/// Where an intermediate result (logits) is stored in the type too.
inline double layer_tolerance(at::ScalarType type) {
  return type == at::kBFloat16 ? 1e-2 : tolerance(type);
}

inline constexpr at::ScalarType kTypes[] = {at::kDouble, at::kFloat, at::kBFloat16};

}  // namespace seqconv::internal::testing
