#include <ATen/ATen.h>

#include "libtorch/ops/conv_ops.h"
#include "seqconv/ops/cumulative_average.h"

namespace seqconv::ops {

at::Tensor cumulative_average_reference(
    const at::Tensor& x, const std::optional<at::Tensor>& lengths) {
  const c10::SymInt T = x.sym_size(1);
  const at::Tensor wide = x.to(at::kDouble);
  const at::Tensor mask = lengths ? length_mask(wide, *lengths) : at::ones({}, wide.options());
  const at::Tensor count =
      at::arange(1, c10::Scalar(T + 1), wide.options()).unsqueeze(1);  // [T, 1]
  const at::Tensor y = (wide * mask).cumsum(1) / count * mask;
  return y.to(x.scalar_type());
}

}  // namespace seqconv::ops
