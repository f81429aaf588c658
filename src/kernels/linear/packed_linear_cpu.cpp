#include <algorithm>
#include <cstring>
#include <functional>

#include "kernels/common/cache_line.h"
#include "kernels/common/tiles.h"
#include "kernels/linear/linear_kernels.h"
#include "kernels/linear/linear_packing.h"
#include "kernels/packed_linear.h"

namespace seqconv::internal::kernels {
namespace {

/// Bytes of rows that are multiplied with a panel before the next one is: they
/// stay in the second-level cache.
constexpr int64_t kRowBytes = 256 << 10;

}  // namespace

/// A product cut into items, some rows times some panels, by sizes alone.
class LinearItems {
 public:
  LinearItems(const PackedLinear& weight, const LinearPass& pass)
      : weight_(weight),
        ops_(linear_kernels(weight.type_, weight.target_)),
        pass_(pass),
        K_(weight.inputs()),
        groups_(groups_of(ops_, K_)),
        parts_(weight.gated() ? 2 : 1),
        N_(weight.outputs() / parts_),
        panels_(ceil_div(N_, ops_.panel) * parts_),
        rows_(rows_together()),
        // Many rows want one panel in the cache, few rows many sums.
        panels_together_(pass.rows > ops_.rows ? parts_ : kPanelGroup),
        columns_(ceil_div(panels_, panels_together_)),
        copies_(are_copied()) {}

  int64_t count() const { return ceil_div(pass_.rows, rows_) * columns_; }

  /// Reading a weight takes as long as several products with it.
  int64_t grain() const {
    return grain_for(
        panels_together_ * ops_.panel * K_ * std::max<int64_t>(1, std::min(rows_, pass_.rows) / 8));
  }

  /// Items [begin, end), in one thread.
  void multiply(int64_t begin, int64_t end) const {
    int64_t copied = -1;
    for (int64_t item = begin; item < end; ++item) {
      const int64_t row = item / columns_ * rows_;
      const int64_t panel = item % columns_ * panels_together_;
      LinearBlock block = block_at(row, panel);
      if (copies_)
        use_copies(block, row, copied == row);
      copied = row;
      ops_.multiply(block);
    }
  }

 private:
  /// Groups of nearly as many rows each, of whole blocks.
  int64_t rows_together() const {
    const int64_t block_bytes = ops_.rows * K_ * ops_.input_bytes;
    const int64_t most = std::max<int64_t>(1, kRowBytes / block_bytes);
    const int64_t blocks = std::max<int64_t>(1, ceil_div(pass_.rows, ops_.rows));
    return ceil_div(blocks, ceil_div(blocks, most)) * ops_.rows;
  }

  /// Rows that are whole pages apart have one place in the first-level cache,
  /// which holds eight of them at most: such rows are copied a line further
  /// apart. So are those that take another form.
  bool are_copied() const { return ops_.prepare != nullptr || (pass_.rows > 4 && K_ % 1024 == 0); }

  /// Bytes from a copied row to the next: whole lines, and one more.
  int64_t copy_bytes() const {
    const int64_t longest = groups_ * ops_.group + kRowRoom;
    return (ceil_div(longest * ops_.input_bytes, kCacheLine) | 1) * kCacheLine;
  }

  /// Copies of the rows of a block, which begins at `row`; made already where
  /// they are those of the block before.
  void use_copies(LinearBlock& block, int64_t row, bool made) const {
    static thread_local Scratch<std::byte> copies;
    static thread_local Scratch<float> row_scales;
    const int64_t bytes = copy_bytes();
    copies.reserve(rows_ * bytes);
    row_scales.reserve(rows_);
    for (int64_t r = 0; r < block.rows && !made; ++r) {
      const float* const x = pass_.x + (row + r) * K_;
      std::byte* const copy = copies.data() + r * bytes;
      if (ops_.prepare == nullptr)
        std::memcpy(copy, x, static_cast<size_t>(K_) * sizeof(float));
      else
        row_scales.data()[r] = ops_.prepare(x, K_, copy);
      // Weights behind the last input are zero, but NaN would not be.
      if (const int64_t more = groups_ * ops_.group - K_; more > 0)
        std::memset(copy + K_ * ops_.input_bytes, 0, static_cast<size_t>(more * ops_.input_bytes));
    }
    block.x = copies.data();
    block.x_stride = bytes / ops_.input_bytes;
    if (ops_.prepare != nullptr)
      block.row_scales = row_scales.data();
  }

  LinearBlock block_at(int64_t row, int64_t panel) const {
    const int64_t stride = pass_.y_stride > 0 ? pass_.y_stride : N_;
    const int64_t n = panel / parts_ * ops_.panel;
    const int64_t count = std::min(panels_together_, panels_ - panel);
    const int64_t panel_bytes = groups_ * ops_.group * ops_.panel * ops_.weight_bytes;
    const OutputSides sides = all_sides();
    return {
        .x = pass_.x + row * K_,
        .x_stride = K_,
        .rows = std::min(rows_, pass_.rows - row),
        .panels = weight_.panels_.get() + panel * panel_bytes,
        .panel_count = count,
        .groups = groups_,
        .outputs = std::min(count / parts_ * ops_.panel, N_ - n),
        .end = pass_.end,
        .sides = sides.from(n),
        .gate_sides = sides.from((parts_ - 1) * N_ + n),
        .residual = pass_.residual == nullptr ? nullptr : pass_.residual + row * N_ + n,
        .residual_stride = N_,
        .y = pass_.y + row * stride + n,
        .y_stride = stride};
  }

  OutputSides all_sides() const {
    OutputSides sides{.bias = pass_.bias};
    if (weight_.scales_ != nullptr) {
      sides.scales = weight_.scales_->scales.data();
      sides.compensations = weight_.scales_->compensations.data();
    }
    return sides;
  }

  const PackedLinear& weight_;
  const LinearKernels& ops_;
  const LinearPass& pass_;
  const int64_t K_;
  const int64_t groups_;  ///< of inputs
  const int64_t parts_;   ///< 2: every other panel is one of gates
  const int64_t N_;
  const int64_t panels_;
  const int64_t rows_;  ///< of an item
  const int64_t panels_together_;
  const int64_t columns_;  ///< items of the same rows
  const bool copies_;
};

void packed_linear(
    const PackedLinear& weight, const LinearPass& pass, const ParallelFor& parallel_for) {
  const LinearItems items(weight, pass);
  const auto body = [&](int64_t begin, int64_t end) { items.multiply(begin, end); };
  // By reference: a std::function of its own would take memory.
  parallel_for(items.count(), items.grain(), std::cref(body));
}

}  // namespace seqconv::internal::kernels
