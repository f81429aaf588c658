#pragma once

#include <ATen/ATen.h>
#include <ATen/ExpandUtils.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

/// Shapes of operators of LibTorch for which the device `meta` has a kernel in
/// Python alone. To be included by one file of a test program.
namespace seqconv::internal::testing {

inline at::Tensor index_select_shape(const at::Tensor& x, int64_t dim, const at::Tensor& index) {
  TORCH_CHECK_INDEX(index.dim() <= 1, "index_select: index must be a vector");
  auto sizes = x.sizes().vec();
  sizes.at(static_cast<size_t>(dim < 0 ? dim + x.dim() : dim)) = index.numel();
  return at::empty(sizes, x.options());
}

inline at::Tensor& same_shape_out(const at::Tensor& x, at::Tensor& out) {
  at::native::resize_output(out, x.sizes());
  return out;
}

inline at::Tensor& logical_shape(const at::Tensor& x, const at::Tensor& y, at::Tensor& out) {
  at::native::resize_output(out, at::infer_size(x.sizes(), y.sizes()));
  return out;
}

inline at::Tensor where_shape(
    const at::Tensor& condition, const at::Tensor& x, const at::Tensor& y) {
  const auto sizes = at::infer_size(condition.sizes(), at::infer_size(x.sizes(), y.sizes()));
  const auto options = condition.options();
  return at::empty(sizes, options.dtype(at::result_type(x, y)));
}

inline at::Tensor& where_out_shape(
    const at::Tensor& condition, const at::Tensor& x, const at::Tensor& y, at::Tensor& out) {
  at::native::resize_output(
      out, at::infer_size(condition.sizes(), at::infer_size(x.sizes(), y.sizes())));
  return out;
}

inline at::Tensor same_shape(const at::Tensor& x) {
  return at::empty_like(x);
}

using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

inline Three layer_norm_shape(
    const at::Tensor& x,
    c10::SymIntArrayRef normalized,
    const std::optional<at::Tensor>& /*weight*/,
    const std::optional<at::Tensor>& /*bias*/,
    double /*epsilon*/) {
  auto rows = x.sizes().vec();
  for (size_t i = 0; i < normalized.size(); ++i)
    rows[rows.size() - 1 - i] = 1;
  return {at::empty_like(x), at::empty(rows, x.options()), at::empty(rows, x.options())};
}

inline at::Tensor like_or_none(const std::optional<at::Tensor>& tensor, bool wanted) {
  return wanted && tensor && tensor->defined() ? at::empty_like(*tensor) : at::Tensor();
}

inline Three layer_norm_backward_shape(
    const at::Tensor& /*grad*/,
    const at::Tensor& x,
    c10::SymIntArrayRef /*normalized*/,
    const at::Tensor& /*mean*/,
    const at::Tensor& /*rstd*/,
    const std::optional<at::Tensor>& weight,
    const std::optional<at::Tensor>& bias,
    std::array<bool, 3> mask) {
  return {like_or_none(x, mask[0]), like_or_none(weight, mask[1]), like_or_none(bias, mask[2])};
}

/// Of one axis, stride 1, without padding: as conv1d is called (with an axis of
/// one step in front).
inline at::Tensor convolution_shape(
    const at::Tensor& x,
    const at::Tensor& weight,
    const std::optional<at::Tensor>& /*bias*/,
    c10::SymIntArrayRef /*stride*/,
    c10::SymIntArrayRef padding,
    c10::SymIntArrayRef /*dilation*/,
    bool /*transposed*/,
    c10::SymIntArrayRef /*output_padding*/,
    c10::SymInt /*groups*/) {
  auto sizes = x.sizes().vec();
  sizes[1] = weight.size(0);
  for (size_t i = 2; i < sizes.size(); ++i)
    sizes[i] += 2 * padding[i - 2].expect_int() - (weight.size(static_cast<int64_t>(i)) - 1);
  return at::empty(sizes, x.options());
}

inline Three convolution_backward_shape(
    const at::Tensor& grad,
    const at::Tensor& x,
    const at::Tensor& weight,
    c10::SymIntArrayRef /*stride*/,
    c10::SymIntArrayRef /*padding*/,
    c10::SymIntArrayRef /*dilation*/,
    bool /*transposed*/,
    c10::SymIntArrayRef /*output_padding*/,
    c10::SymInt /*groups*/,
    std::array<bool, 3> mask) {
  return {
      like_or_none(x, mask[0]),
      like_or_none(weight, mask[1]),
      mask[2] ? at::empty({weight.size(0)}, grad.options()) : at::Tensor()};
}

inline at::Tensor glu_backward_shape(
    const at::Tensor& /*grad*/, const at::Tensor& x, int64_t /*dim*/) {
  return at::empty_like(x);
}

inline at::Tensor embedding_backward_shape(
    const at::Tensor& grad,
    const at::Tensor& /*indices*/,
    c10::SymInt rows,
    c10::SymInt /*padding_index*/,
    bool /*scale*/) {
  return at::empty({rows.expect_int(), grad.size(-1)}, grad.options());
}

TORCH_LIBRARY_IMPL(aten, Meta, m) {
  m.impl("index_select", index_select_shape);
  m.impl("logical_not.out", same_shape_out);
  m.impl("abs.out", same_shape_out);
  m.impl("logical_and.out", logical_shape);
  m.impl("logical_or.out", logical_shape);
  m.impl("where.self", where_shape);
  m.impl("where.self_out", where_out_shape);
  m.impl("relu", same_shape);
  m.impl("glu_backward", glu_backward_shape);
  m.impl("embedding_dense_backward", embedding_backward_shape);
  m.impl("native_layer_norm", layer_norm_shape);
  m.impl("native_layer_norm_backward", layer_norm_backward_shape);
  m.impl("convolution_overrideable", convolution_shape);
  m.impl("convolution_backward_overrideable", convolution_backward_shape);
}

}  // namespace seqconv::internal::testing
