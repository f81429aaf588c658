#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>

#include <string_view>

#include "kernels/bfloat16.h"
#include "kernels/dropout.h"
#include "libtorch/ops/check.h"
#include "libtorch/ops/seed.h"

/// What the fused element-wise operators share: their checks and types.
namespace seqconv::ops {
using namespace internal;

/// x holds floating-point numbers, and no tangent, which kernels would lose.
inline void check_input(std::string_view op, std::string_view name, const at::Tensor& x) {
  SEQCONV_CHECK_OP(
      op,
      x.defined() && x.is_floating_point(),
      "{} must be of a floating-point type, but got {}",
      name,
      x.defined() ? toString(x.scalar_type()) : "an undefined tensor");
  SEQCONV_CHECK_OP(
      op,
      !x._fw_grad(/*level=*/0).defined(),
      "{} must be without a tangent, as forward-mode derivatives are not supported, but got one "
      "with a tangent",
      name);
}

inline void check_same_device(
    std::string_view op, std::string_view name, const at::Tensor& y, const at::Tensor& x) {
  check_input(op, name, y);
  SEQCONV_CHECK_OP(
      op,
      y.device() == x.device(),
      "{} must be on {} like the other inputs, but got {}",
      name,
      x.device(),
      y.device());
}

/// y has x's type and device.
inline void check_same_type(
    std::string_view op, std::string_view name, const at::Tensor& y, const at::Tensor& x) {
  check_same_device(op, name, y, x);
  SEQCONV_CHECK_OP(
      op,
      y.scalar_type() == x.scalar_type(),
      "{} must be {} like the other inputs, but got {}",
      name,
      x.scalar_type(),
      y.scalar_type());
}

/// y has x's device, and x's type or float32 beside 16 bits: parameters of
/// mixed precision are float32.
inline void check_parameter(
    std::string_view op, std::string_view name, const at::Tensor& y, const at::Tensor& x) {
  check_same_device(op, name, y, x);
  if (y.scalar_type() != at::kFloat || x.element_size() != 2)
    check_same_type(op, name, y, x);
}

/// Whether the kernels take x: others go through the reference.
inline bool has_kernel(const at::Tensor& x) {
  const at::ScalarType type = x.scalar_type();
  return x.is_cpu() && (type == at::kFloat || type == at::kDouble || type == at::kBFloat16);
}

/// The kernels number the elements of whole batches.
inline bool has_kernel(const at::Tensor& x, const Seed& seed) {
  return has_kernel(x) && seed.rows == 0;
}

inline void check_probability(std::string_view op, double p) {
  SEQCONV_CHECK_OP(op, p >= 0 && p < 1, "p must be in [0, 1), but got {}", p);
}

/// The backward passes are not differentiable themselves: say so rather than
/// return a wrong second derivative.
inline void check_first_derivative(std::string_view op) {
  SEQCONV_CHECK_OP(
      op, !c10::GradMode::is_enabled(), "has a first derivative only, but got create_graph = true");
}

/// Seeds cross the autograd boundary as int64.
inline kernels::Dropout make_dropout(double p, int64_t seed) {
  return {p, static_cast<uint64_t>(seed)};
}

}  // namespace seqconv::ops
