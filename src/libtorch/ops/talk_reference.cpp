#include <ATen/ATen.h>

#include "libtorch/ops/conv_ops.h"
#include "libtorch/ops/kernel_arguments.h"
#include "seqconv/ops/talk.h"

namespace seqconv::ops {
namespace {

/// Prefix sums [B, T+1, H, R] at rows index [B, T, H] of whole numbers.
at::Tensor rows_at(const at::Tensor& prefix, const at::Tensor& index) {
  const at::Tensor rows = index.to(at::kLong).unsqueeze(3).expand({-1, -1, -1, prefix.size(3)});
  return prefix.gather(1, rows);
}

/// A distance [B, T, H] between whole ends, in float64 where positions are
/// exact: whole tokens, and one more where there is a fraction.
struct Distance {
  at::Tensor whole;  ///< [B, T, H]
  at::Tensor more;   ///< [B, T, H]: 1 or 0
  at::Tensor part;   ///< [B, T, H, 1], of the distance's type

  Distance(const at::Tensor& distance, const at::Tensor& min, const at::Tensor& max) {
    const at::Tensor exact = distance.to(at::kDouble).clamp(min, max);
    whole = exact.detach().floor();
    more = exact.detach().ceil() - whole;
    part = (exact - whole).to(distance.scalar_type()).unsqueeze(3);
  }
};

}  // namespace

at::Tensor talk_reference(
    const at::Tensor& x,
    const at::Tensor& offset_left,
    const std::optional<at::Tensor>& offset_right,
    const TalkOptions& options) {
  const int64_t B = x.size(0), T = x.size(1), C = x.size(2);
  const int64_t H = offset_left.size(2);
  const auto type = accumulator_type(x.scalar_type());
  at::Tensor scaled = x.to(type) / static_cast<double>(options.max_left + options.max_right + 1);
  if (options.lengths)
    scaled = scaled * length_mask(scaled, *options.lengths);
  const at::Tensor prefix =
      at::constant_pad_nd(scaled.cumsum(1), {0, 0, 1, 0}).reshape({B, T + 1, H, C / H});
  const at::Tensor here = at::arange(T, scaled.options().dtype(at::kDouble)).reshape({1, T, 1});
  const at::Tensor ahead = (T - 1) - here;

  const Distance left(offset_left.to(type) * options.max_left, -ahead, here);
  const at::Tensor before = left.part * rows_at(prefix, here - left.whole - left.more) +
      (1 - left.part) * rows_at(prefix, here - left.whole);

  at::Tensor until = prefix.narrow(1, 1, T);  // [B, T, H, R]
  if (offset_right) {
    const Distance right(offset_right->to(type) * options.max_right, -here, ahead);
    const at::Tensor end = here + right.whole + 1;
    until =
        (1 - right.part) * rows_at(prefix, end) + right.part * rows_at(prefix, end + right.more);
  }
  at::Tensor y = (until - before).reshape({B, T, C});
  if (options.lengths)
    y = y * length_mask(y, *options.lengths);
  return y.to(x.scalar_type());
}

}  // namespace seqconv::ops
