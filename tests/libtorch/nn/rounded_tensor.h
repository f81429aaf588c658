#pragma once

#include <ATen/ATen.h>

/// Values with a bound on how far rounding can have moved them: what a
/// computation in bfloat16 may differ by, derived operation by operation.
namespace seqconv::internal::testing {

/// Half a unit in the last of bfloat16's eight bits, relative.
inline constexpr double kBFloat16Rounding = 1.0 / 256;

/// A float64 value, and a bound on |computed - value|, element by element.
struct Rounded {
  at::Tensor value;
  at::Tensor error;

  explicit Rounded(const at::Tensor& exact)
      : value(exact.to(at::kDouble)), error(at::zeros_like(value)) {}
  Rounded(const at::Tensor& value, const at::Tensor& error) : value(value), error(error) {}

  /// After it was stored as bfloat16.
  Rounded stored() const { return {value, error + kBFloat16Rounding * (value.abs() + error)}; }
  /// A linear map that is at least 0, as averages are.
  template <class Map>
  Rounded mapped(const Map& map) const {
    return {map(value), map(error)};
  }
  Rounded narrow(int64_t dim, int64_t first, int64_t count) const {
    return mapped([&](const at::Tensor& t) { return t.narrow(dim, first, count); });
  }
};

inline Rounded operator+(const Rounded& a, const Rounded& b) {
  return {a.value + b.value, a.error + b.error};
}

/// product(a, b) is linear in both, element by element or of matrices.
template <class Product>
Rounded multiply(const Rounded& a, const Rounded& b, const Product& product) {
  return {
      product(a.value, b.value),
      product(a.value.abs(), b.error) + product(a.error, b.value.abs()) +
          product(a.error, b.error)};
}
inline Rounded operator*(const Rounded& a, const Rounded& b) {
  return multiply(a, b, [](const at::Tensor& s, const at::Tensor& t) { return s * t; });
}
/// Of matrices.
inline Rounded matmul(const Rounded& a, const Rounded& b) {
  return multiply(a, b, [](const at::Tensor& s, const at::Tensor& t) { return at::matmul(s, t); });
}
inline Rounded transposed(const Rounded& a) {
  return a.mapped([](const at::Tensor& t) { return t.t(); });
}
inline Rounded concatenated(const Rounded& a, const Rounded& b) {
  return {at::cat({a.value, b.value}, -1), at::cat({a.error, b.error}, -1)};
}

/// Monotone: the error is that of an end.
inline Rounded sigmoid(const Rounded& a) {
  const at::Tensor value = a.value.sigmoid();
  return {
      value,
      at::maximum((a.value + a.error).sigmoid() - value, value - (a.value - a.error).sigmoid())};
}
/// s (1 - s) of a sigmoid's result.
inline Rounded sigmoid_slope(const Rounded& s) {
  return s * Rounded(1 - s.value, s.error);
}

}  // namespace seqconv::internal::testing
