#include "libtorch/nn/positions.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/sin.h>

#include <algorithm>
#include <cmath>

#include "libtorch/ops/device.h"

namespace seqconv::internal {
namespace {
constexpr int64_t kLeastRows = 64;
constexpr int64_t kMostFirstRows = 4096;
constexpr int64_t kDistantRows = 1024;
}  // namespace

at::Tensor sinusoidal_positions(int64_t first, int64_t count, int64_t dim) {
  TORCH_CHECK(dim >= 4, "[positions] sinusoidal positions need dim >= 4, but got dim = ", dim);
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

SinusoidalTable::SinusoidalTable(int64_t dim)
    : dim_(dim), first_{0, sinusoidal_positions(kFirstPosition, kLeastRows, dim)} {}

bool SinusoidalTable::Rows::hold(int64_t wanted, int64_t count, at::Device device) const {
  return rows.defined() && rows.device() == device && wanted >= past &&
      wanted + count <= past + rows.size(0);
}

at::Tensor SinusoidalTable::rows(int64_t past, int64_t count, at::Device device) const {
  const std::lock_guard lock(mutex_);
  const bool first = past == 0 || past + count <= kMostFirstRows;
  Rows& kept = first ? first_ : distant_;
  if (!kept.hold(past, count, device)) {
    const int64_t begin = first ? 0 : past;
    const int64_t size =
        first ? std::max(past + count, 2 * first_.rows.size(0)) : std::max(count, kDistantRows);
    const at::Tensor rows = sinusoidal_positions(kFirstPosition + begin, size, dim_);
    kept = {begin, ops::to_device(rows, device)};
  }
  return kept.rows.narrow(0, past - kept.past, count);
}

}  // namespace seqconv::internal
