#include "rivals.h"

#include <ATen/ATen.h>

namespace seqconv::bench {

at::Tensor dynamic_unfold(const at::Tensor& x, const at::Tensor& logits) {
  const int64_t B = x.size(0), T = x.size(1), C = x.size(2);
  const int64_t H = logits.size(2), K = logits.size(3);
  const at::Tensor windows = at::constant_pad_nd(x, {0, 0, K / 2, K - 1 - K / 2})
                                 .unfold(1, K, 1)
                                 .view({B, T, H, C / H, K});
  return at::einsum("bthrk,bthk->bthr", {windows, logits.softmax(-1)}).reshape({B, T, C});
}

at::Tensor dynamic_band(const at::Tensor& x, const at::Tensor& logits) {
  const int64_t B = x.size(0), T = x.size(1), C = x.size(2);
  const int64_t H = logits.size(2), K = logits.size(3), wide = T + K - 1;
  const at::Tensor taps = logits.softmax(-1).permute({0, 2, 1, 3}).reshape({B * H, T, K});
  at::Tensor band = taps.new_zeros({B * H, T, wide});
  band.as_strided({B * H, T, K}, {T * wide, wide + 1, 1}).copy_(taps);
  const at::Tensor values = x.view({B, T, H, C / H}).transpose(1, 2).reshape({B * H, T, C / H});
  return at::bmm(band.narrow(2, K / 2, T), values)
      .view({B, H, T, C / H})
      .transpose(1, 2)
      .reshape({B, T, C});
}

at::Tensor talk_cumsum(
    const at::Tensor& x,
    const at::Tensor& left,
    const at::Tensor& right,
    int64_t max_left,
    int64_t max_right) {
  const int64_t T = x.size(0), B = x.size(1), C = x.size(2);
  const int64_t H = left.size(2);
  const at::Tensor sums = at::cat({x.new_zeros({1, B, C}), at::cumsum(x, 0)}).view({-1, C / H});
  const at::Tensor t = at::arange(T, x.options()).view({T, 1, 1});
  const at::Tensor column = at::arange(B * H, at::kLong).view({1, B, H});
  const auto at_position = [&](const at::Tensor& position) {
    at::Tensor low = position.detach().floor();
    const at::Tensor part = (position - low).reshape({-1, 1});
    low = low.to(at::kLong);
    const at::Tensor high = (low + 1).clamp_max(T);
    const auto rows = [&](const at::Tensor& position_of_row) {
      return sums.index_select(0, (position_of_row * (B * H) + column).view(-1));
    };
    return at::lerp(rows(low), rows(high), part);
  };
  const at::Tensor end = (t + right * double(max_right) + 1).clamp_max(T);
  const at::Tensor begin = (t - left * double(max_left)).clamp_min(0);
  return (at_position(end) - at_position(begin)).view({T, B, C}) / double(max_left + max_right + 1);
}

}  // namespace seqconv::bench
