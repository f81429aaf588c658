#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/SymInt.h>

#include <optional>
#include <string_view>

#include "seqconv/kernels/conv.h"
#include "seqconv/ops/common.h"

/// Checks and conversions that the operators share. Messages begin with the
/// operator's name in brackets; sizes may be symbolic.
namespace seqconv::ops {

using OptionalTensor = std::optional<at::Tensor>;

/// What lightconv and dynamicconv say about themselves when they are checked.
struct ConvArguments {
  const char* op;
  const at::Tensor& x;                 ///< [B, T, C]
  const char* kernels_name;            ///< "weight" or "logits"
  const at::Tensor& kernels;           ///< [H, K] or [B, T, H, K]
  OptionalTensor bias = std::nullopt;  ///< [C]
  c10::SymInt padding_left = 0;
  std::string_view normalization = "softmax";
  bool renormalize_edges = false;
  double drop_p = 0;
  OptionalTensor drop_seed = std::nullopt;
  OptionalTensor drop_mask = std::nullopt;  ///< as kernels
  OptionalTensor lengths = std::nullopt;    ///< [B]
};

/// Everything that can be said without reading values.
void check_conv(const ConvArguments& args);

/// x is [B, T, C] of a floating type that kernels know.
void check_input(const char* op, const at::Tensor& x);
/// `other` has x's type (or float32 beside 16 bits) and device.
void check_type_beside(
    const char* op,
    const char* name,
    const at::Tensor& other,
    const at::Tensor& x);
/// C is a multiple of H >= 1.
void check_heads(
    const char* op,
    const c10::SymInt& channels,
    const c10::SymInt& heads);
/// lengths is int64 [B] on x's device.
void check_lengths(
    const char* op,
    const OptionalTensor& lengths,
    const at::Tensor& x);
/// A gradient has the shape, type and device of what it belongs to.
void check_gradient(
    const char* op,
    const at::Tensor& grad,
    const at::Tensor& of);
/// A ring state [N, slots, C] beside x [N, T', C], T' >= 1, and a position.
void check_state(
    const char* op,
    const at::Tensor& x,
    const at::Tensor& state,
    const at::Tensor& position);
/// Raises when a gradient would be asked of an operator that has none.
void check_no_gradient(const char* op, at::TensorList inputs);

/// The normalisation called so; an error that lists the names otherwise.
Normalization parse_normalization(
    const char* op,
    std::string_view normalization);

/// Pointers and values of arguments for CPU kernels; owns what had to be made
/// contiguous.
class LengthValues {
 public:
  /// Checks that all are in 0 .. T.
  LengthValues(
      const char* op,
      const OptionalTensor& lengths,
      const at::Tensor& x);
  const int64_t* data() const { return data_; }

 private:
  at::Tensor tensor_;
  const int64_t* data_ = nullptr;
};

class DropValues {
 public:
  DropValues(double p, const OptionalTensor& seed, const OptionalTensor& mask);
  const kernels::TapDrop& get() const { return drop_; }

 private:
  at::Tensor mask_;
  kernels::TapDrop drop_;
};

/// Sizes of a convolution: x [B, T, C], kernels [..., H, K].
kernels::ConvShape conv_shape(
    const at::Tensor& x,
    const at::Tensor& kernels,
    int64_t padding_left);

/// float64 for float64, else float32.
at::ScalarType accumulator_type(at::ScalarType type);

/// Contiguous and of the type sums are kept in; undefined stays undefined.
at::Tensor accumulated(const at::Tensor& tensor);

/// The value of a position tensor (one int64 element), at least 0.
int64_t position_value(const char* op, const at::Tensor& position);

/// Threads and instruction set of the CPU kernels.
kernels::Execution cpu_execution();

/// Pointers with the kernels' types. null for undefined tensors.
template <class S>
const S* const_pointer(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<const S*>(tensor.const_data_ptr())
                          : nullptr;
}
template <class S>
S* pointer(const at::Tensor& tensor) {
  return static_cast<S*>(tensor.mutable_data_ptr());
}

/// Calls f with a value of the storage type of x (already checked).
template <class F>
void dispatch_storage(at::ScalarType type, const F& f) {
  switch (type) {
    case at::kDouble:
      return f(double{});
    case at::kFloat:
      return f(float{});
    case at::kBFloat16:
      return f(kernels::BFloat16{});
    default:
      TORCH_INTERNAL_ASSERT(false, "unchecked type ", type);
  }
}

/// Calls f with values of the storage types of x and of a tensor beside it.
template <class F>
void dispatch_storage_pair(
    at::ScalarType type,
    at::ScalarType beside,
    const F& f) {
  if (type == at::kBFloat16 && beside == at::kFloat)
    return f(kernels::BFloat16{}, float{});
  dispatch_storage(type, [&](auto value) { f(value, value); });
}

}  // namespace seqconv::ops
