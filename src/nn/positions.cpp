#include "seqconv/nn/positions.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/sin.h>

#include <cmath>

namespace seqconv {

at::Tensor sinusoidal_positions(int64_t first, int64_t count, int64_t dim) {
  TORCH_CHECK(
      dim >= 4,
      "[positions] sinusoidal positions need dim >= 4, but got dim = ",
      dim);
  const int64_t half = dim / 2;
  const double step = std::log(10000.0) / static_cast<double>(half - 1);
  const at::Tensor frequency = at::exp(at::arange(half, at::kDouble) * -step);
  const at::Tensor angle = at::outer(  // [count, half]
      at::arange(first, first + count, at::kDouble),
      frequency);
  at::Tensor rows = at::cat({at::sin(angle), at::cos(angle)}, 1);
  if (dim % 2 == 1)
    rows = at::constant_pad_nd(rows, {0, 1});
  return rows.to(at::kFloat);
}

}  // namespace seqconv
