#include "kernels/linear/linear_packing.h"

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <new>
#include <numeric>

#include "kernels/bfloat16.h"
#include "kernels/common/cache_line.h"
#include "kernels/common/tiles.h"
#include "kernels/linear/linear_kernels.h"

namespace seqconv::internal::kernels {
namespace {

/// Rows of K weights -> [K / group, width, group], zeros beyond.
template <class Packed, class T>
class PanelPacker {
 public:
  PanelPacker(const LinearKernels& ops, int64_t K)
      : width_(ops.panel),
        group_(ops.group),
        K_(K),
        panel_size_(groups_of(ops, K) * ops.group * ops.panel) {}

  int64_t panel_size() const { return panel_size_; }

  void pack(const T* weight, int64_t count, Packed* panel) const {
    // A few rows at a time: rows of some sizes share places in the cache.
    constexpr int64_t kRows = 4;
    int64_t n = 0;
    for (; n + kRows <= count; n += kRows)
      for (int64_t k = 0; k < K_; ++k)
        for (int64_t i = 0; i < kRows; ++i)
          panel[place(n + i, k)] = convert(weight[(n + i) * K_ + k]);
    for (; n < count; ++n)
      for (int64_t k = 0; k < K_; ++k)
        panel[place(n, k)] = convert(weight[n * K_ + k]);
  }

 private:
  int64_t place(int64_t n, int64_t k) const {
    return (k / group_ * width_ + n) * group_ + k % group_;
  }
  static Packed convert(T value) {
    if constexpr (std::is_same_v<Packed, BFloat16>)
      return to_bfloat16(value);
    else
      return value;
  }

  int64_t width_, group_, K_, panel_size_;
};

}  // namespace

std::shared_ptr<std::byte> allocate_weights(int64_t size) {
  constexpr size_t kPage = 2 << 20;
  const auto bytes = static_cast<size_t>(size);
  const std::align_val_t alignment{bytes >= kPage ? kPage : static_cast<size_t>(kCacheLine)};
  auto* const data = static_cast<std::byte*>(::operator new(bytes, alignment));
#ifdef MADV_HUGEPAGE
  if (bytes >= kPage)
    static_cast<void>(madvise(data, bytes, MADV_HUGEPAGE));
#endif
  return {data, [alignment](std::byte* p) { ::operator delete(p, alignment); }};
}

float quantize_row(const float* row, int64_t K, int8_t* values) {
  float largest = 0;
  for (int64_t k = 0; k < K; ++k)
    largest = std::max(largest, std::abs(row[k]));
  const Int8Scale by(largest);
  for (int64_t k = 0; k < K; ++k)
    values[k] = static_cast<int8_t>(std::nearbyint(row[k] * by.inverse));
  return by.scale;
}

template <class Packed, class T>
void PackedLinear::pack(const T* weight) {
  const LinearKernels& ops = linear_kernels(type_, target_);
  const PanelPacker<Packed, T> packer(ops, inputs_);
  const int64_t width = ops.panel, size = packer.panel_size();
  const int64_t parts = gated_ ? 2 : 1, N = outputs_ / parts;
  bytes_ = ceil_div(N, width) * parts * size * ops.weight_bytes;
  panels_ = allocate_weights(bytes_);
  std::fill_n(panels_.get(), bytes_, std::byte{0});
  auto* panel = reinterpret_cast<Packed*>(panels_.get());
  for (int64_t n = 0; n < N; n += width)
    for (int64_t part = 0; part < parts; ++part, panel += size)
      packer.pack(weight + (part * N + n) * inputs_, std::min(width, N - n), panel);
}

PackedLinear::PackedLinear(
    const float* weight,
    int64_t outputs,
    int64_t inputs,
    bool gated,
    WeightType type,
    std::optional<LinearTarget> target)
    : outputs_(outputs),
      inputs_(inputs),
      gated_(gated),
      type_(type),
      target_(target.value_or(best_linear_target(type))) {
  switch (type) {
    case WeightType::kFloat32:
      pack<float>(weight);
      return;
    case WeightType::kBfloat16:
      pack<BFloat16>(weight);
      return;
    case WeightType::kInt8:
      break;
  }
  std::vector<int8_t> values(static_cast<size_t>(outputs * inputs));
  std::vector<float> scales(static_cast<size_t>(outputs));
  for (int64_t n = 0; n < outputs; ++n)
    scales[static_cast<size_t>(n)] =
        quantize_row(weight + n * inputs, inputs, values.data() + n * inputs);
  *this = {{values.data(), scales.data()}, outputs, inputs, gated, target_};
}

PackedLinear::PackedLinear(
    Int8Weights weight, int64_t outputs, int64_t inputs, bool gated, LinearTarget target)
    : outputs_(outputs), inputs_(inputs), gated_(gated), type_(WeightType::kInt8), target_(target) {
  pack<int8_t>(weight.values);
  const int32_t zero_point = linear_kernels(type_, target).zero_point;
  OutputScales sides;
  sides.scales.assign(weight.scales, weight.scales + outputs);
  sides.compensations.resize(sides.scales.size());
  for (int64_t n = 0; n < outputs; ++n)
    sides.compensations[static_cast<size_t>(n)] = zero_point *
        std::accumulate(weight.values + n * inputs, weight.values + (n + 1) * inputs, int32_t{0});
  bytes_ += outputs * int64_t{sizeof(float) + sizeof(int32_t)};
  scales_ = std::make_shared<const OutputScales>(std::move(sides));
}

}  // namespace seqconv::internal::kernels
