#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>

#include <string_view>

#include "seqconv/kernels/dropout.h"

/// What the fused element-wise operators share: their checks and types.
namespace seqconv::ops {

/// x is on the CPU and float32 or float64.
inline void
check_input(std::string_view op, std::string_view name, const at::Tensor& x) {
  TORCH_CHECK(
      x.defined() && x.device().is_cpu(),
      "[",
      op,
      "] ",
      name,
      " must be a CPU tensor, but got ",
      x.defined() ? x.device().str() : "an undefined one");
  TORCH_CHECK(
      x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble,
      "[",
      op,
      "] ",
      name,
      " must be float32 or float64, but got ",
      x.scalar_type());
}

/// y has x's type and device.
inline void check_same_type(
    std::string_view op,
    std::string_view name,
    const at::Tensor& y,
    const at::Tensor& x) {
  check_input(op, name, y);
  TORCH_CHECK(
      y.scalar_type() == x.scalar_type(),
      "[",
      op,
      "] ",
      name,
      " must be ",
      x.scalar_type(),
      " like the other inputs, but got ",
      y.scalar_type());
}

inline void check_probability(std::string_view op, double p) {
  TORCH_CHECK(p >= 0 && p < 1, "[", op, "] p must be in [0, 1), but got ", p);
}

/// The backward passes are not differentiable themselves: say so rather than
/// return a wrong second derivative.
inline void check_first_derivative(std::string_view op) {
  TORCH_CHECK(
      !c10::GradMode::is_enabled(),
      "[",
      op,
      "] has a first derivative only, but got create_graph = true");
}

/// Seeds cross the autograd boundary as int64.
inline kernels::Dropout make_dropout(double p, int64_t seed) {
  return {p, static_cast<uint64_t>(seed)};
}

/// Calls body(T{}) with T the element type of a checked input.
template <class Body>
auto dispatch_type(const at::Tensor& x, const Body& body) {
  return x.scalar_type() == at::kDouble ? body(double{}) : body(float{});
}

}  // namespace seqconv::ops
