#include "libtorch/nn/cnn.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv1d.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/remainder.h>
#include <ATen/ops/zeros_like.h>

#include "libtorch/nn/conv_bias.h"
#include "libtorch/nn/padding.h"
#include "seqconv/ops/lightconv.h"

namespace seqconv::internal {

at::Tensor cnn_reference(
    const at::Tensor& x,
    const at::Tensor& weight,
    const at::Tensor& bias,
    int64_t padding_left,
    const std::optional<at::Tensor>& lengths) {
  const int64_t T = x.size(1), K = weight.size(2);
  const at::Tensor padded = at::constant_pad_nd(
      zero_padding(x, lengths), {0, 0, padding_left, K - 1 - padding_left});  // [B, T+K-1, C]
  at::Tensor y = at::zeros_like(x);
  for (int64_t j = 0; j < K; ++j)
    y = y + at::matmul(padded.narrow(1, j, T), weight.select(2, j).t());
  return zero_padding(bias.defined() ? y + bias : y, lengths);
}

CnnImpl::CnnImpl(const CnnOptions& options, const InitGenerator& generator) : options_(options) {
  const int64_t C = options.channels, K = options.kernel_size;
  weight = register_parameter("weight", xavier_uniform({C, C, K}, C * K, C * K, generator));
  if (options.bias)
    bias = register_parameter("bias", constant(C, 0, generator));
}

at::Tensor CnnImpl::convolved(const at::Tensor& padded) const {
  const at::ScalarType type = padded.scalar_type();
  const at::Tensor offset = bias.defined() ? bias.to(type) : bias;
  return at::conv1d(padded.transpose(1, 2), weight.to(type), optional_bias(offset))
      .transpose(1, 2)
      .contiguous();
}

at::Tensor CnnImpl::forward(const at::Tensor& x, const std::optional<at::Tensor>& lengths) const {
  const int64_t left = options_.padding_left();
  const at::Tensor padded =
      at::constant_pad_nd(zero_padding(x, lengths), {0, 0, left, options_.kernel_size - 1 - left});
  return zero_padding(convolved(padded), lengths);
}

at::Tensor CnnImpl::step(
    const at::Tensor& x, ConvState& state, const StepPosition& position) const {
  const int64_t slots = options_.kernel_size - 1;
  if (slots == 0)
    return convolved(x);
  // Input number p lies in slot p % slots: the oldest one stands where the
  // next would go.
  const at::Tensor order =
      at::remainder(at::arange(slots, position.tensor.options()) + position.tensor, slots);
  const at::Tensor padded =  // [N, K - 1 + T', C]
      at::cat({state.window.index_select(1, order), x}, 1);
  const at::Tensor next = at::remainder(order + x.size(1), slots);
  state.window.index_copy_(1, next, padded.narrow(1, x.size(1), slots));
  return convolved(padded);
}

ConvState CnnImpl::initial_state(int64_t rows) const {
  return {ops::conv_initial_state(rows, options_.kernel_size, options_.channels, weight.options())};
}

}  // namespace seqconv::internal
