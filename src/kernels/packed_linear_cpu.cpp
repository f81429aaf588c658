#include "seqconv/kernels/packed_linear.h"

#include <sys/mman.h>

#include <algorithm>
#include <functional>
#include <new>

#include "kernels/cache_line.h"
#include "kernels/linear_kernels.h"
#include "kernels/tiles.h"

namespace seqconv::kernels {
namespace {

/// Bytes of rows that are multiplied with a panel before the next one is: they
/// stay in the second-level cache.
constexpr int64_t kRowBytes = 256 << 10;

/// On pages of 2 MB where it fills one and the system has them: weights are
/// read once from end to end, and looking up so many small pages takes a sixth
/// of the time.
std::shared_ptr<float> allocate_weights(int64_t count) {
  constexpr size_t kPage = 2 << 20;
  const size_t bytes = static_cast<size_t>(count) * sizeof(float);
  const std::align_val_t alignment{
      bytes >= kPage ? kPage : static_cast<size_t>(kCacheLine)};
  float* const data = static_cast<float*>(::operator new(bytes, alignment));
#ifdef MADV_HUGEPAGE
  if (bytes >= kPage)
    static_cast<void>(madvise(data, bytes, MADV_HUGEPAGE));
#endif
  return {data, [alignment](float* p) { ::operator delete(p, alignment); }};
}

/// `count` rows of K weights -> [K, width], zeros beyond.
void pack_panel(
    const float* weight,
    int64_t count,
    int64_t K,
    int64_t width,
    float* panel) {
  // A few rows at a time: rows of some sizes share places in the cache.
  constexpr int64_t kRows = 4;
  int64_t n = 0;
  for (; n + kRows <= count; n += kRows) {
    const float* const rows = weight + n * K;
    float* const to = panel + n;
    for (int64_t k = 0; k < K; ++k)
      for (int64_t i = 0; i < kRows; ++i)
        to[k * width + i] = rows[i * K + k];
  }
  for (; n < width; ++n)
    for (int64_t k = 0; k < K; ++k)
      panel[k * width + n] = n < count ? weight[n * K + k] : 0;
}

/// A product cut into items, some rows times some panels, by sizes alone.
class LinearItems {
 public:
  LinearItems(const PackedLinear& weight, const LinearPass& pass, Isa isa)
      : ops_(linear_kernels(isa)),
        pass_(pass),
        K_(weight.inputs()),
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
        panels_together_ * ops_.panel * K_ *
        std::max<int64_t>(1, std::min(rows_, pass_.rows) / 8));
  }

  /// Items [begin, end) of the product with `panels`, in one thread.
  void multiply(const float* panels, int64_t begin, int64_t end) const {
    int64_t copied = -1;
    for (int64_t item = begin; item < end; ++item) {
      const int64_t row = item / columns_ * rows_;
      const int64_t panel = item % columns_ * panels_together_;
      LinearBlock block = block_at(panels, row, panel);
      if (copies_) {
        block.x_stride = kPadded + K_;
        block.x = copy_rows(block.rows, copied == row ? -1 : row);
        copied = row;
      }
      ops_.multiply(block);
    }
  }

 private:
  static constexpr int64_t kPadded =
      kCacheLine / static_cast<int64_t>(sizeof(float));

  /// Groups of nearly as many rows each, of whole blocks.
  int64_t rows_together() const {
    const int64_t block_bytes =
        ops_.rows * K_ * static_cast<int64_t>(sizeof(float));
    const int64_t most = std::max<int64_t>(1, kRowBytes / block_bytes);
    const int64_t blocks =
        std::max<int64_t>(1, ceil_div(pass_.rows, ops_.rows));
    return ceil_div(blocks, ceil_div(blocks, most)) * ops_.rows;
  }

  /// Rows that are whole pages apart have one place in the first-level cache,
  /// which holds eight of them at most: such rows are copied a line further
  /// apart.
  bool are_copied() const { return pass_.rows > 4 && K_ % 1024 == 0; }

  /// Copies of rows from `row` on, or with -1 those that were made last.
  const float* copy_rows(int64_t rows, int64_t row) const {
    static thread_local Scratch<float> copies;
    copies.reserve(rows_ * (K_ + kPadded));
    if (row >= 0)
      for (int64_t r = 0; r < rows; ++r)
        std::copy_n(
            pass_.x + (row + r) * K_,
            K_,
            copies.data() + r * (K_ + kPadded));
    return copies.data();
  }

  LinearBlock block_at(const float* panels, int64_t row, int64_t panel) const {
    const auto from = [](const float* p, int64_t i) {
      return p == nullptr ? p : p + i;
    };
    const int64_t stride = pass_.y_stride > 0 ? pass_.y_stride : N_;
    const int64_t n = panel / parts_ * ops_.panel;
    const int64_t count = std::min(panels_together_, panels_ - panel);
    return {
        .x = pass_.x + row * K_,
        .x_stride = K_,
        .rows = std::min(rows_, pass_.rows - row),
        .panels = panels + panel * ops_.panel * K_,
        .panel_count = count,
        .inputs = K_,
        .outputs = std::min(count / parts_ * ops_.panel, N_ - n),
        .end = pass_.end,
        .bias = from(pass_.bias, n),
        .gate_bias = from(pass_.bias, (parts_ - 1) * N_ + n),
        .residual = from(pass_.residual, row * N_ + n),
        .residual_stride = N_,
        .y = pass_.y + row * stride + n,
        .y_stride = stride};
  }

  const LinearKernels& ops_;
  const LinearPass& pass_;
  const int64_t K_;
  const int64_t parts_;  ///< 2: every other panel is one of gates
  const int64_t N_;
  const int64_t panels_;
  const int64_t rows_;  ///< of an item
  const int64_t panels_together_;
  const int64_t columns_;  ///< items of the same rows
  const bool copies_;
};

}  // namespace

PackedLinear::PackedLinear(
    const float* weight,
    int64_t outputs,
    int64_t inputs,
    bool gated,
    Isa isa)
    : outputs_(outputs), inputs_(inputs), gated_(gated), isa_(isa) {
  const int64_t width = linear_kernels(isa).panel;
  const int64_t parts = gated ? 2 : 1, N = outputs / parts;
  size_ = ceil_div(N, width) * parts * width * inputs;
  data_ = allocate_weights(size_);
  float* panel = data_.get();
  for (int64_t n = 0; n < N; n += width)
    for (int64_t part = 0; part < parts; ++part, panel += width * inputs)
      pack_panel(
          weight + (part * N + n) * inputs,
          std::min(width, N - n),
          inputs,
          width,
          panel);
}

void packed_linear(
    const PackedLinear& weight,
    const LinearPass& pass,
    const ParallelFor& parallel_for) {
  const LinearItems items(weight, pass, weight.isa_);
  const auto body = [&](int64_t begin, int64_t end) {
    items.multiply(weight.data_.get(), begin, end);
  };
  // By reference: a std::function of its own would take memory.
  parallel_for(items.count(), items.grain(), std::cref(body));
}

}  // namespace seqconv::kernels
