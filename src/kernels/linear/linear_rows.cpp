#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "kernels/common/tiles.h"
#include "kernels/linear/linear_kernels.h"
#include "kernels/linear/linear_packing.h"
#include "kernels/packed_linear.h"

namespace seqconv::internal::kernels {
namespace {

/// Copies rows of packed weights to the rows of other panels, a group of inputs
/// after the other: kBytes each.
template <size_t kBytes>
void gather_groups(
    const std::byte* from,
    std::span<const int32_t> rows,
    int64_t groups,
    int64_t width,
    std::byte* to) {
  const auto bytes = static_cast<int64_t>(kBytes);
  const int64_t panel_bytes = groups * width * bytes;
  const auto count = static_cast<int64_t>(rows.size());
  for (int64_t first = 0; first < count; first += width, to += panel_bytes) {
    const int64_t own = std::min(width, count - first);
    for (int64_t i = 0; i < own; ++i) {
      const int64_t row = rows[static_cast<size_t>(first + i)];
      const std::byte* source = from + row / width * panel_bytes + row % width * bytes;
      std::byte* place = to + i * bytes;
      for (int64_t g = 0; g < groups; ++g) {
        std::memcpy(place, source, kBytes);
        source += width * bytes;
        place += width * bytes;
      }
    }
  }
}

void gather_rows(
    const LinearKernels& ops,
    const std::byte* from,
    std::span<const int32_t> rows,
    int64_t groups,
    std::byte* to) {
  switch (ops.group * ops.weight_bytes) {
    case 1:
      return gather_groups<1>(from, rows, groups, ops.panel, to);
    case 2:
      return gather_groups<2>(from, rows, groups, ops.panel, to);
    case 4:
      return gather_groups<4>(from, rows, groups, ops.panel, to);
    default:
      fail("groups of weights must have 1, 2 or 4 bytes");
  }
}

}  // namespace

int64_t PackedLinear::bytes_of_rows(int64_t rows) const {
  const LinearKernels& ops = linear_kernels(type_, target_);
  return ceil_div(rows, ops.panel) * ops.panel * groups_of(ops, inputs_) * ops.group *
      ops.weight_bytes;
}

PackedLinear PackedLinear::rows(std::span<const int32_t> rows, std::byte* memory) const {
  SEQCONV_CHECK(!gated_, "rows of gated weights stand in two panels");
  for (const int32_t row : rows)
    SEQCONV_CHECK(
        row >= 0 && row < outputs_,
        "rows of weights must be in [0, ",
        outputs_,
        "), but got ",
        row);
  const LinearKernels& ops = linear_kernels(type_, target_);
  const int64_t groups = groups_of(ops, inputs_);
  PackedLinear some = *this;
  some.outputs_ = static_cast<int64_t>(rows.size());
  some.bytes_ = bytes_of_rows(some.outputs_);
  some.panels_ = memory == nullptr ? allocate_weights(some.bytes_)
                                   : std::shared_ptr<std::byte>(std::shared_ptr<void>(), memory);
  std::fill_n(some.panels_.get(), some.bytes_, std::byte{0});
  gather_rows(ops, panels_.get(), rows, groups, some.panels_.get());
  if (scales_ == nullptr)
    return some;
  OutputScales sides;
  for (const int32_t row : rows) {
    sides.scales.push_back(scales_->scales[static_cast<size_t>(row)]);
    sides.compensations.push_back(scales_->compensations[static_cast<size_t>(row)]);
  }
  some.bytes_ += some.outputs_ * int64_t{sizeof(float) + sizeof(int32_t)};
  some.scales_ = std::make_shared<const OutputScales>(std::move(sides));
  return some;
}

}  // namespace seqconv::internal::kernels
