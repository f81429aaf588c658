#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/SymInt.h>

#include <initializer_list>
#include <optional>
#include <string_view>
#include <tuple>

#include "libtorch/ops/check.h"
#include "seqconv/ops/conv_options.h"

/// Checks that the operators share. Messages begin with the
/// operator's name in brackets; sizes may be symbolic.
namespace seqconv::ops {

using OptionalTensor = std::optional<at::Tensor>;

inline const OptionalTensor kNoTensor;

inline const at::Tensor* pointer_to(const OptionalTensor& tensor) {
  return tensor ? &*tensor : nullptr;
}

/// A view of what lightconv or dynamicconv is called with.
struct ConvArguments {
  const char* op = nullptr;                ///< its name in messages
  const char* logits_name = nullptr;       ///< "weight" or "logits"
  const at::Tensor& x;                     ///< [B, T, C]
  const at::Tensor& logits;                ///< [H, K] or [B, T, H, K]
  const OptionalTensor& bias = kNoTensor;  ///< [C]
  c10::SymInt padding_left = 0;
  std::string_view normalization = "softmax";
  bool renormalize_edges = false;
  DropConnect drop = {};                      ///< mask as logits
  const OptionalTensor& lengths = kNoTensor;  ///< [B]

  /// Inputs that may have gradients: x and two others.
  auto inputs() const { return std::tie(x, logits, bias); }
  /// These arguments with other inputs.
  ConvArguments with(
      const at::Tensor& x, const at::Tensor& logits, const OptionalTensor& bias) const {
    return {
        op,
        logits_name,
        x,
        logits,
        bias,
        padding_left,
        normalization,
        renormalize_edges,
        drop,
        lengths};
  }
};

/// Everything that can be said without reading values.
void check(const ConvArguments& args);
void check_step(const ConvArguments& args, const at::Tensor& state, const at::Tensor& position);

/// x is [B, T, C] of a floating type that kernels know.
void check_input(const char* op, const at::Tensor& x);
/// x is of a floating type that kernels of its device know.
void check_storage(const char* op, const at::Tensor& x);
/// `other` has x's type and device.
void check_type_as(const char* op, const char* name, const at::Tensor& other, const at::Tensor& x);
/// Integers are int64 or int32 on x's device.
void check_integers(
    const char* op, const char* name, const at::Tensor& integers, const at::Tensor& x);
/// A bias is [C] of a type beside x's.
void check_bias(const char* op, const at::Tensor& bias, const at::Tensor& x);
/// DropConnect of taps from `logits`: p, and a seed or a mask as these.
void check_drop(
    const char* op, const DropConnect& drop, const at::Tensor& logits, const at::Tensor& x);
/// `other` has x's type (or float32 beside 16 bits) and device.
void check_type_beside(
    const char* op, const char* name, const at::Tensor& other, const at::Tensor& x);
/// C is a multiple of H >= 1.
void check_heads(const char* op, const c10::SymInt& channels, const c10::SymInt& heads);
/// lengths is int64 or int32 [B] on x's device.
void check_lengths(const char* op, const OptionalTensor& lengths, const at::Tensor& x);
/// A gradient has the shape, type and device of what it belongs to.
void check_gradient(const char* op, const at::Tensor& grad, const at::Tensor& of);
/// There is at least one input in x [N, T', C] of a step.
void check_new_inputs(const char* op, const at::Tensor& x);
/// A seed or position is one int64 element.
void check_scalar(const char* op, const char* name, const at::Tensor& scalar);
/// A position is one, on the host or on x's device.
void check_position(const char* op, const at::Tensor& position, const at::Tensor& x);
/// A ring state [N, slots, C] beside x [N, T', C], T' >= 1, and a position.
void check_state(
    const char* op, const at::Tensor& x, const at::Tensor& state, const at::Tensor& position);

/// The arguments of a backward operator, and the gradient of y.
template <class Arguments>
void check_backward(const Arguments& args, const at::Tensor& grad) {
  check(args);
  check_gradient(args.op, grad, args.x);
}

/// Raises when an input (null: none) carries a tangent: no operator has a forward-mode
/// derivative, and one that is ignored would be taken for zero.
void check_no_tangent(const char* op, std::initializer_list<const at::Tensor*> inputs);
/// Raises when a gradient or a tangent would be asked of an operator that has
/// neither.
void check_not_differentiated(const char* op, std::initializer_list<const at::Tensor*> inputs);

/// The normalisation called so; an error that lists the names otherwise.
Normalization parse_normalization(const char* op, std::string_view normalization);

}  // namespace seqconv::ops
