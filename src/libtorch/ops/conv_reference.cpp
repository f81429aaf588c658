#include <ATen/ATen.h>

#include <limits>

#include "base/random.h"
#include "libtorch/ops/conv_ops.h"
#include "libtorch/ops/kernel_arguments.h"
#include "seqconv/ops/dynamicconv.h"
#include "seqconv/ops/lightconv.h"
#include "seqconv/ops/short_conv.h"

namespace seqconv::ops {
namespace {

/// A size that is no variable of an export, whose B and T may be.
int64_t fixed_size(const at::Tensor& tensor, int64_t axis) {
  return tensor.sym_size(axis).guard_int(__FILE__, __LINE__);
}

/// [.., H] -> [.., C], each for C / H neighbouring channels.
at::Tensor of_channels(const at::Tensor& taps, int64_t channels) {
  std::vector<int64_t> sizes(static_cast<size_t>(taps.dim()), -1);
  sizes.push_back(channels / fixed_size(taps, -1));
  return taps.unsqueeze(-1).expand(sizes).flatten(-2);
}

/// Taps [B, T, H, K] of every position of x from logits that broadcast to that:
/// softmax over the taps that meet an input, of which `seen` are before x.
at::Tensor renormalized_reference(
    const at::Tensor& logits, const at::Tensor& x, int64_t seen, const ShortConvOptions& options) {
  const OptionalTensor& lengths = options.lengths;
  const c10::SymInt B = x.sym_size(0), T = x.sym_size(1);
  const int64_t K = fixed_size(logits, 3);
  const auto integers = at::TensorOptions(at::kLong).device(x.device());
  const at::Tensor length = lengths ? lengths->view_symint({B, 1, 1})
                                    : at::full_symint({B, 1, 1}, c10::Scalar(T), integers);
  const at::Tensor t = at::arange(c10::Scalar(T), integers).view_symint({1, T, 1});
  const at::Tensor taps = at::arange(K, integers) - options.padding_left.value_or(K - 1);
  const at::Tensor s = t + taps * options.dilation;  // [1, T, K]
  // Positions of padding are never looked at: any taps will do.
  const at::Tensor meets = at::logical_or(
      at::logical_and(s.ge(-seen), s.lt(length)),
      t.ge(length));  // [B, T, K]
  const at::Tensor wide = logits.to(accumulator_type(logits.scalar_type()));
  return wide
      .masked_fill(meets.logical_not().unsqueeze(2), -std::numeric_limits<double>::infinity())
      .softmax(-1);
}

/// DropConnect with a mask for taps of these sizes instead of a seed, by the
/// definition in base/random.h.
DropConnect drawn(const DropConnect& drop, at::IntArrayRef sizes) {
  if (!drop.seed)
    return drop;
  const at::Tensor kept = at::ones(sizes, at::kBool);
  bool* const out = kept.mutable_data_ptr<bool>();
  const auto seed = static_cast<uint64_t>(drop.seed->item<int64_t>());
  for (int64_t i = 0; drop.p > 0 && i < kept.numel(); ++i)
    out[i] = random_word(seed, static_cast<uint64_t>(i)) >= drop_threshold(drop.p);
  return {.p = drop.p, .mask = kept};
}

/// DropConnect on taps of any shape.
at::Tensor drop_reference(const at::Tensor& taps, const DropConnect& drop) {
  if (!drop.seed && !drop.mask)
    return taps;
  const DropConnect kept = drawn(drop, taps.sizes());
  return kept.mask ? taps * kept.mask->ne(0).to(taps.options()) / (1.0 - drop.p) : taps;
}

/// Normalised and dropped taps [B, T, H, K], or [1, 1, G, K] of static ones.
at::Tensor taps_reference(const at::Tensor& x, int64_t seen, const ShortConvOptions& options) {
  const at::Tensor logits =
      options.dynamic ? *options.dynamic : options.weight->unsqueeze(0).unsqueeze(0);
  const at::Tensor taps = options.renormalize_edges
      ? renormalized_reference(logits, x, seen, options)
      : normalize_reference(logits, options.normalization);
  if (options.dynamic)
    return drop_reference(taps, options.drop);
  // One mask for all positions: drawn on ones of the weight's shape.
  return taps * drop_reference(at::ones_like(*options.weight, taps.options()), options.drop);
}

/// The sequences of a packed call, one after the other.
at::Tensor packed_reference(const at::Tensor& x, const ShortConvOptions& options) {
  const at::Tensor offsets = options.cu_seqlens->to(at::kLong);
  const int64_t axis = x.dim() - 2;
  const auto part = [&](const OptionalTensor& tensor, int64_t first, int64_t length) {
    if (!tensor)
      return OptionalTensor();
    const at::Tensor rows = tensor->narrow(axis, first, length);
    return OptionalTensor(axis == 0 ? rows.unsqueeze(0) : rows);
  };
  std::vector<at::Tensor> all;
  for (int64_t b = 0; b + 1 < offsets.numel(); ++b) {
    const auto first = offsets[b].item<int64_t>();
    const auto length = offsets[b + 1].item<int64_t>() - first;
    ShortConvOptions one = options;
    one.cu_seqlens.reset();
    one.dynamic = part(options.dynamic, first, length);
    if (options.drop.mask && options.dynamic)
      one.drop.mask = part(options.drop.mask, first, length);
    if (options.initial_state)
      one.initial_state = options.initial_state->narrow(0, b, 1);
    const at::Tensor y = short_conv_reference(*part(x, first, length), one);
    all.push_back(axis == 0 ? y.squeeze(0) : y);
  }
  return all.empty() ? at::empty_like(x) : at::cat(all, axis);
}

/// The sequences of rows whose positions have numbers, one after the other.
at::Tensor numbered_reference(const at::Tensor& x, const ShortConvOptions& options) {
  const at::Tensor numbers = options.seq_idx->to(at::kLong);
  std::vector<at::Tensor> rows;
  for (int64_t b = 0; b < x.size(0); ++b) {
    std::vector<at::Tensor> all;
    for (int64_t t = 0, length = 0; t < x.size(1); t += length) {
      const auto number = numbers[b][t].item<int64_t>();
      length = 1;
      while (t + length < x.size(1) && numbers[b][t + length].item<int64_t>() == number)
        ++length;
      const auto part = [&](const at::Tensor& of) {
        return of.narrow(0, b, 1).narrow(1, t, length);
      };
      ShortConvOptions one = options;
      one.seq_idx.reset();
      if (options.dynamic)
        one.dynamic = part(*options.dynamic);
      if (options.drop.mask && options.dynamic)
        one.drop.mask = part(*options.drop.mask);
      if (options.initial_state)
        one.initial_state =
            t == 0 ? OptionalTensor(options.initial_state->narrow(0, b, 1)) : std::nullopt;
      all.push_back(number < 0 ? at::zeros_like(part(x)) : short_conv_reference(part(x), one));
    }
    rows.push_back(all.empty() ? x.narrow(0, b, 1) : at::cat(all, 1));
  }
  return rows.empty() ? at::empty_like(x) : at::cat(rows);
}

/// Options of lightconv or dynamicconv as those of short_conv.
ShortConvOptions short_conv_options(const ConvOptions& options) {
  return {
      .bias = options.bias,
      .padding_left = options.padding_left,
      .normalization = options.normalization,
      .renormalize_edges = options.renormalize_edges,
      .drop = options.drop,
      .lengths = options.lengths};
}

}  // namespace

at::Tensor short_conv_reference(const at::Tensor& x, const ShortConvOptions& options) {
  if (options.cu_seqlens || options.seq_idx) {
    ShortConvOptions masked = options;  // which taps are dropped depends on all rows
    if (options.dynamic)
      masked.drop = drawn(options.drop, options.dynamic->sizes());
    return options.cu_seqlens ? packed_reference(x, masked) : numbered_reference(x, masked);
  }
  const auto& [lengths, state] = std::tie(options.lengths, options.initial_state);
  const at::Tensor wide = x.to(accumulator_type(x.scalar_type()));
  const at::Tensor mask = lengths ? length_mask(wide, *lengths) : at::ones({}, wide.options());
  const c10::SymInt T = x.sym_size(1);
  const int64_t C = fixed_size(x, 2), D = options.dilation;
  const at::Tensor taps = taps_reference(x, state ? fixed_size(*state, 1) : 0, options);
  const int64_t K = fixed_size(taps, 3), left = options.padding_left.value_or(K - 1);
  at::Tensor padded = wide * mask;
  if (state)  // only causal ones have it
    padded = at::cat({state->to(wide.scalar_type()), padded}, 1);
  else
    padded = at::constant_pad_nd(padded, {0, 0, left * D, (K - 1 - left) * D});  // [B, .., C]
  // All taps at once: the gradient of one alone would be as large as that of all.
  const auto each = taps.unbind(3);  // K of [B, T, H]
  const auto added =
      options.dynamic && options.weight ? options.weight->unbind(1) : std::vector<at::Tensor>();
  at::Tensor z = at::zeros_like(wide);
  for (size_t j = 0; j < each.size(); ++j) {
    at::Tensor tap = of_channels(each[j], C);  // [B, T, C]
    if (!added.empty())
      tap = tap + of_channels(added[j], C);
    z = z + tap * padded.narrow_symint(1, static_cast<int64_t>(j) * D, T);
  }
  if (options.bias)
    z = z + *options.bias;
  if (options.activation == ConvActivation::kSilu)
    z = z * z.sigmoid();
  if (options.residual)
    z = z + wide;
  return (z * mask).to(x.scalar_type());
}

at::Tensor lightconv_reference(
    const at::Tensor& x, const at::Tensor& weight, const ConvOptions& options) {
  ShortConvOptions taps = short_conv_options(options);
  taps.weight = weight;
  return short_conv_reference(x, taps);
}

at::Tensor dynamicconv_reference(
    const at::Tensor& x, const at::Tensor& logits, const ConvOptions& options) {
  ShortConvOptions taps = short_conv_options(options);
  taps.dynamic = logits;
  return short_conv_reference(x, taps);
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
  const at::Tensor position = at::arange(c10::Scalar(x.sym_size(1)), lengths.options());  // [T]
  return position.lt(lengths.unsqueeze(1)).unsqueeze(2).to(x.scalar_type());
}

}  // namespace seqconv::ops
