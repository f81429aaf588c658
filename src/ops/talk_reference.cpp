#include <ATen/ATen.h>

#include "ops/conv_ops.h"
#include "ops/kernel_arguments.h"
#include "seqconv/ops/talk.h"

namespace seqconv::ops {
namespace {

/// Prefix sums [B, T+1, H, R] at rows index [B, T, H] of whole numbers.
at::Tensor rows_at(const at::Tensor& prefix, const at::Tensor& index) {
  const at::Tensor rows =
      index.to(at::kLong).unsqueeze(3).expand({-1, -1, -1, prefix.size(3)});
  return prefix.gather(1, rows);
}

}  // namespace

at::Tensor talk_reference(
    const at::Tensor& x,
    const at::Tensor& offset_left,
    const std::optional<at::Tensor>& offset_right,
    const TalkFuncOptions& options) {
  const int64_t B = x.size(0), T = x.size(1), C = x.size(2);
  const int64_t H = offset_left.size(2);
  const auto type = accumulator_type(x.scalar_type());
  at::Tensor scaled = x.to(type) /
      static_cast<double>(options.max_left + options.max_right + 1);
  if (options.lengths)
    scaled = scaled * length_mask(scaled, *options.lengths);
  const at::Tensor prefix = at::constant_pad_nd(scaled.cumsum(1), {0, 0, 1, 0})
                                .reshape({B, T + 1, H, C / H});
  const at::Tensor here = at::arange(T, scaled.options()).reshape({1, T, 1});
  const double last = static_cast<double>(T - 1);

  const at::Tensor left =
      (here - offset_left.to(type) * options.max_left).clamp(0, last);
  const at::Tensor left_floor = left.detach().floor();
  const at::Tensor left_ceil = left.detach().ceil();
  const at::Tensor left_part = (left_ceil - left).unsqueeze(3);
  const at::Tensor before = left_part * rows_at(prefix, left_floor) +
      (1 - left_part) * rows_at(prefix, left_ceil);

  at::Tensor until = prefix.narrow(1, 1, T);  // [B, T, H, R]
  if (offset_right) {
    const at::Tensor right =
        (here + offset_right->to(type) * options.max_right).clamp(0, last);
    const at::Tensor right_floor = right.detach().floor();
    const at::Tensor right_ceil = right.detach().ceil();
    const at::Tensor right_part = (right - right_floor).unsqueeze(3);
    until = (1 - right_part) * rows_at(prefix, right_floor + 1) +
        right_part * rows_at(prefix, right_ceil + 1);
  }
  at::Tensor y = (until - before).reshape({B, T, C});
  if (options.lengths)
    y = y * length_mask(y, *options.lengths);
  return y.to(x.scalar_type());
}

}  // namespace seqconv::ops
