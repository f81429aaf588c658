#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bitwise_and.h>
#include <ATen/ops/bitwise_right_shift.h>
#include <ATen/ops/bitwise_xor.h>
#include <ATen/ops/glu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/masked_fill.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>
#include <torch/library.h>

#include "base/random.h"
#include "libtorch/ops/conv_ops.h"
#include "libtorch/ops/device.h"
#include "libtorch/ops/elementwise.h"
#include "libtorch/ops/kept_elements.h"

namespace seqconv::ops {
namespace {

constexpr int64_t kWord = 0xffffffff;

at::Tensor low(const at::Tensor& x) {
  return at::bitwise_and(x, kWord);
}

/// Of 64 bits without a sign.
at::Tensor high(const at::Tensor& x) {
  return low(at::bitwise_right_shift(x, 32));
}

/// Blocks first, first + 1, ... of philox() (base/random.h): [count, 4] int64,
/// a word of 32 bits each. seed [] int64.
at::Tensor philox_blocks(const at::Tensor& seed, int64_t first, int64_t count) {
  const at::Tensor counter = at::arange(first, first + count, seed.options());
  const at::Tensor zero = at::zeros_like(counter);
  at::Tensor c0 = low(counter), c1 = high(counter), c2 = zero, c3 = zero;
  at::Tensor k0 = low(seed), k1 = high(seed);
  for (int round = 0; round < 10; ++round) {
    const at::Tensor p0 = c0 * int64_t{0xD2511F53};
    const at::Tensor p1 = c2 * int64_t{0xCD9E8D57};
    c0 = at::bitwise_xor(at::bitwise_xor(high(p1), c1), k0);
    c2 = at::bitwise_xor(at::bitwise_xor(high(p0), c3), k1);
    c1 = low(p1);
    c3 = low(p0);
    k0 = low(k0 + int64_t{0x9E3779B9});
    k1 = low(k1 + int64_t{0xBB67AE85});
  }
  return at::stack({c0, c1, c2, c3}, 1);
}

at::Tensor kept_elements_reference(
    const at::Tensor& seed, at::IntArrayRef size, int64_t first, double p) {
  const int64_t count = c10::multiply_integers(size);
  const int64_t block = first / 4;
  return philox_blocks(seed, block, (first + count + 3) / 4 - block)
      .view(-1)
      .narrow(0, first - 4 * block, count)
      .ge(int64_t{drop_threshold(p)})
      .view(size);
}

}  // namespace

at::Tensor Seed::as_tensor() const {
  return tensor.defined() ? tensor : at::scalar_tensor(static_cast<int64_t>(value), at::kLong);
}

at::Tensor kept_elements(at::IntArrayRef sizes, double p, const Seed& seed, at::Device device) {
  static const auto op = find_op<KeptElementsSignature>(kKeptElements);
  const at::Tensor key = to_device(seed.as_tensor(), device);
  return op.call(key, sizes, seed.first_of(c10::multiply_integers(sizes)), p);
}

at::Tensor dropout_reference(const at::Tensor& x, double p, const Seed& seed) {
  if (p == 0)
    return x;
  const at::Tensor kept = kept_elements(x.sizes(), p, seed, x.device());
  return at::masked_fill(x, kept.logical_not(), 0) * (1 / (1 - p));
}

at::Tensor glu_reference(const at::Tensor& x, const std::optional<at::Tensor>& lengths) {
  const at::Tensor y = at::glu(x, -1);
  if (!lengths)
    return y;
  return at::masked_fill(y, length_mask(y, *lengths).eq(0), 0);
}

at::Tensor activation_dropout_reference(
    const at::Tensor& x, Activation activation, double p, const Seed& seed) {
  switch (activation) {
    case Activation::kRelu:
      return dropout_reference(at::relu(x), p, seed);
    case Activation::kSwish:
      return dropout_reference(at::silu(x), p, seed);
  }
  SEQCONV_CHECK_OP("activation_dropout", false, "unknown activation");
}

at::Tensor layer_norm_reference(
    const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double epsilon) {
  return at::layer_norm(x, {x.size(-1)}, weight, bias, epsilon);
}

TORCH_LIBRARY_FRAGMENT(seqconv, m) {
  m.def("kept_elements(Tensor seed, int[] size, int first, float p) -> Tensor");
}

// CUDA devices have a kernel of their own.
TORCH_LIBRARY_IMPL(seqconv, CompositeExplicitAutograd, m) {
  m.impl(kKeptElements, kept_elements_reference);
}

}  // namespace seqconv::ops
