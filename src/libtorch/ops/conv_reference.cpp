#include <ATen/ATen.h>

#include <limits>

#include "base/random.h"
#include "libtorch/ops/conv_ops.h"
#include "libtorch/ops/kernel_arguments.h"
#include "seqconv/ops/dynamicconv.h"
#include "seqconv/ops/lightconv.h"

namespace seqconv::ops {
namespace {

/// y[t] = bias + sum_j taps[t, j] * x[t - padding_left + j] in tensor algebra,
/// with lengths. taps [B, T, H, K] or [1, 1, H, K].
at::Tensor convolve_reference(
    const at::Tensor& x, const at::Tensor& taps, const ConvOptions& options) {
  const auto& [padding, bias, lengths] =
      std::tie(options.padding_left, options.bias, options.lengths);
  const int64_t T = x.size(1), R = x.size(2) / taps.size(2), K = taps.size(3);
  const at::Tensor wide = x.to(accumulator_type(x.scalar_type()));
  const at::Tensor mask = lengths ? length_mask(wide, *lengths) : at::ones({}, wide.options());
  const at::Tensor padded =
      at::constant_pad_nd(wide * mask, {0, 0, padding, K - 1 - padding});  // [B, T+K-1, C]
  at::Tensor y = at::zeros_like(wide);
  for (int64_t j = 0; j < K; ++j) {
    const at::Tensor tap = taps.select(3, j).repeat_interleave(R, 2);  // [B, T, C]
    y = y + tap * padded.narrow(1, j, T);
  }
  return ((bias ? y + *bias : y) * mask).to(x.scalar_type());
}

/// Taps [B, T, H, K] of every position of x from logits that broadcast to
/// that: softmax over the taps that meet an input.
at::Tensor renormalized_reference(
    const at::Tensor& logits, const at::Tensor& x, const ConvOptions& options) {
  const OptionalTensor& lengths = options.lengths;
  const int64_t B = x.size(0), T = x.size(1), K = logits.size(3);
  const auto integers = at::TensorOptions(at::kLong).device(x.device());
  const at::Tensor length = lengths ? lengths->view({B, 1, 1}) : at::full({B, 1, 1}, T, integers);
  const at::Tensor t = at::arange(T, integers).view({1, T, 1});
  const at::Tensor s = t - options.padding_left + at::arange(K, integers);  // [1, T, K]
  // Positions of padding are never looked at: any taps will do.
  const at::Tensor meets = at::logical_or(
      at::logical_and(s.ge(0), s.lt(length)),
      t.ge(length));  // [B, T, K]
  const at::Tensor wide = logits.to(accumulator_type(logits.scalar_type()));
  return wide
      .masked_fill(meets.logical_not().unsqueeze(2), -std::numeric_limits<double>::infinity())
      .softmax(-1);
}

/// DropConnect on taps of any shape, by the definition in base/random.h.
at::Tensor drop_reference(const at::Tensor& taps, const DropConnect& drop) {
  const bool seeded = drop.seed && drop.p > 0;
  if (!seeded && !drop.mask)
    return taps;
  at::Tensor kept;
  if (drop.mask) {
    kept = drop.mask->ne(0);
  } else {
    kept = at::empty(taps.sizes(), at::kBool);
    bool* const out = kept.mutable_data_ptr<bool>();
    const auto seed = static_cast<uint64_t>(drop.seed->item<int64_t>());
    for (int64_t i = 0; i < kept.numel(); ++i)
      out[i] = random_word(seed, static_cast<uint64_t>(i)) >= drop_threshold(drop.p);
  }
  return taps * kept.to(taps.options()) / (1.0 - drop.p);
}

/// Both references. logits [B, T, H, K] or [1, 1, H, K]; `dropped` applies DropConnect to taps.
template <class Dropped>
at::Tensor reference(
    const at::Tensor& x,
    const at::Tensor& logits,
    const ConvOptions& options,
    const Dropped& dropped) {
  const at::Tensor normalized = options.renormalize_edges
      ? renormalized_reference(logits, x, options)
      : normalize_reference(logits, options.normalization);
  return convolve_reference(x, dropped(normalized), options);
}

}  // namespace

at::Tensor lightconv_reference(
    const at::Tensor& x, const at::Tensor& weight, const ConvOptions& options) {
  const at::Tensor logits = weight.unsqueeze(0).unsqueeze(0);  // [1, 1, H, K]
  return reference(x, logits, options, [&](const at::Tensor& taps) {
    // One mask for all positions: drawn on ones of the weight's shape.
    return taps * drop_reference(at::ones_like(weight, taps.options()), options.drop);
  });
}

at::Tensor dynamicconv_reference(
    const at::Tensor& x, const at::Tensor& logits, const ConvOptions& options) {
  return reference(x, logits, options, [&](const at::Tensor& taps) {
    return drop_reference(taps, options.drop);  // [B, T, H, K]
  });
}

at::Tensor normalize_reference(const at::Tensor& logits, Normalization normalization) {
  const at::Tensor wide = logits.to(accumulator_type(logits.scalar_type()));
  const auto norm = [&](int64_t order) {
    return wide.norm(order, -1, /*keepdim=*/true) + kernels::kNormEpsilon;
  };
  switch (normalization) {
    case Normalization::kNone:
      return wide;
    case Normalization::kSoftmax:
      return wide.softmax(-1);
    case Normalization::kSigmoid:
      return wide.sigmoid();
    case Normalization::kTanh:
      return wide.tanh();
    case Normalization::kSquare:
      return wide.square();
    case Normalization::kAbs:
      return wide.abs();
    case Normalization::kL1:
      return wide / norm(1);
    case Normalization::kL2:
      return wide / norm(2);
    case Normalization::kAbsL1:
      return wide.abs() / norm(1);
    case Normalization::kAbsL2:
      return wide.abs() / norm(2);
  }
  fail("unknown normalisation");
}

at::Tensor normalize_reference_backward(
    const at::Tensor& logits, Normalization normalization, const at::Tensor& grad) {
  const at::Tensor taps = normalize_reference(logits, normalization);
  const at::Tensor w = logits.to(taps.scalar_type()), sign = w.sign();
  // Taps are `value` over a norm, which has no slope where it is zero.
  const auto norm_gradient = [&](int64_t order, bool absolute) {
    const at::Tensor norm = w.norm(order, -1, /*keepdim=*/true);
    const at::Tensor scale = (norm + kernels::kNormEpsilon).reciprocal();
    const at::Tensor slope = order == 1 ? sign : (w / norm).masked_fill(norm.eq(0), 0);
    const at::Tensor dot = (grad * taps).sum(-1, /*keepdim=*/true);
    return scale * ((absolute ? grad * sign : grad) - slope * dot);
  };
  switch (normalization) {
    case Normalization::kNone:
      return grad;
    case Normalization::kSoftmax:
      return taps * (grad - (grad * taps).sum(-1, /*keepdim=*/true));
    case Normalization::kSigmoid:
      return grad * taps * (1 - taps);
    case Normalization::kTanh:
      return grad * (1 - taps.square());
    case Normalization::kSquare:
      return grad * 2 * w;
    case Normalization::kAbs:
      return grad * sign;
    case Normalization::kL1:
    case Normalization::kAbsL1:
      return norm_gradient(1, normalization == Normalization::kAbsL1);
    case Normalization::kL2:
    case Normalization::kAbsL2:
      return norm_gradient(2, normalization == Normalization::kAbsL2);
  }
  fail("unknown normalisation");
}

at::Tensor length_mask(const at::Tensor& x, const at::Tensor& lengths) {
  const at::Tensor position = at::arange(x.size(1), lengths.options());  // [T]
  return position.lt(lengths.unsqueeze(1)).unsqueeze(2).to(x.scalar_type());
}

}  // namespace seqconv::ops
