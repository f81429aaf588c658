#if defined(SEQCONV_KERNELS_PACKED_LINEAR_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_PACKED_LINEAR_INL_H
#undef SEQCONV_KERNELS_PACKED_LINEAR_INL_H
#else
#define SEQCONV_KERNELS_PACKED_LINEAR_INL_H
#endif

#include <array>
#include <utility>

#include "kernels/common/cache_line.h"
#include "kernels/linear/linear_end-inl.h"
#include "kernels/linear/linear_kernels.h"

/// Products of rows with packed weights. Sums of a few rows and outputs are
/// kept in registers for all of K, each in ascending order of k. They go
/// through a tile in the first-level cache to the end of the map, which is
/// written once: so an output has the same bits in blocks of any form.
HWY_BEFORE_NAMESPACE();
namespace seqconv::internal::kernels::HWY_NAMESPACE {

/// Vectors of sums. The other registers hold weights and a row's input, and
/// products where these are not fused.
inline constexpr int kSumVectors = kRegisters == 32 ? 24 : HWY_TARGET == HWY_AVX2 ? 12 : 8;
inline constexpr int kLinearRows = kSumVectors / kPanelVectors;

/// Of many rows so many groups of inputs are multiplied before the next ones
/// are: they, and their weights, come from near caches then. Sums wait in
/// between.
inline constexpr int64_t kGroupsAtOnce = 512;
/// Rows of which they do.
inline constexpr int64_t kMostRows = 64;
static_assert(kMostRows >= kLinearRows);

/// Some groups of inputs of all.
struct Groups {
  int64_t first, count;
};

/// How far ahead of their use weights are fetched: of a panel, then of the next
/// one.
inline constexpr int64_t kBytesAhead = 2048;

/// Panels of which R rows are multiplied at once: enough sums that none waits
/// for itself.
template <int R>
inline constexpr int kPanelsAtOnce = R * 4 * kPanelVectors <= kSumVectors ? 4
    : R * 2 * kPanelVectors <= kSumVectors                                ? 2
                                                                          : 1;

/// R rows of x, at one group of inputs after the other.
template <class Products, int R>
class InputRows {
 public:
  using Input = typename Products::Input;

  HWY_INLINE InputRows(const Input* x, int64_t stride) : stride_(stride) {
#pragma GCC unroll 4
    for (int i = 0; i < kPointers; ++i)
      at_[i] = x + 3 * i * stride;
  }
  HWY_INLINE auto row(int r, int group) const {
    const Input* const x = at_[r / 3] + r % 3 * stride_;
    return in_register(Products::inputs(x + group * Products::kGroup));
  }
  HWY_INLINE void advance(int groups) {
#pragma GCC unroll 4
    for (int i = 0; i < kPointers; ++i)
      at_[i] = scalar(at_[i] + groups * Products::kGroup);
  }

 private:
  /// One for three rows: there are not enough registers for all.
  static constexpr int kPointers = (R + 2) / 3;
  const Input* at_[kPointers];
  int64_t stride_;
};

/// R rows times P panels.
template <class Products, int R, int P>
struct PanelSums {
  using Sum = typename Products::Sum;
  using Weight = typename Products::Weight;
  static constexpr int V = P * kPanelVectors;
  Vec<Sum> sum[R][V];

#if HWY_ARCH_ARM
  /// As in talk_backward-inl.h.
  HWY_INLINE PanelSums() {}
#endif
  HWY_INLINE void set_zero() {
    for_all([&](int r, int v) HWY_ATTR { sum[r][v] = hn::Zero(Tag<Sum>()); });
  }
  HWY_INLINE void load(const Sum* sums) {
    for_all([&](int r, int v) HWY_ATTR { sum[r][v] = hn::Load(Tag<Sum>(), sums + place(r, v)); });
  }
  HWY_INLINE void store(Sum* sums) const {
    for_all([&](int r, int v) HWY_ATTR { hn::Store(sum[r][v], Tag<Sum>(), sums + place(r, v)); });
  }

  /// Adds the products of the k-th group of inputs from where x and w are;
  /// panels are `pitch` apart.
  HWY_INLINE void add(const InputRows<Products, R>& x, const Weight* w, int64_t pitch, int k) {
    const auto weight = [&](int v) HWY_ATTR {
      const int outputs = k * kPanel + v % kPanelVectors * kLanes<float>;
      return in_register(
          Products::weights(w + v / kPanelVectors * pitch + outputs * Products::kGroup));
    };
    // What there is less of stays in registers.
    if constexpr (V < R) {
      decltype(weight(0)) weights[V];
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v)
        weights[v] = weight(v);
#pragma GCC unroll 12
      for (int r = 0; r < R; ++r) {
        const auto input = x.row(r, k);
#pragma GCC unroll 8
        for (int v = 0; v < V; ++v)
          sum[r][v] = Products::add(weights[v], input, sum[r][v]);
      }
    } else {
      decltype(x.row(0, 0)) inputs[R];
#pragma GCC unroll 12
      for (int r = 0; r < R; ++r)
        inputs[r] = x.row(r, k);
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) {
        const auto weights = weight(v);
#pragma GCC unroll 12
        for (int r = 0; r < R; ++r)
          sum[r][v] = Products::add(weights, inputs[r], sum[r][v]);
      }
    }
  }

 private:
  static constexpr int64_t place(int r, int v) {
    return r * kSumStride + v * kLanes<float>;
  }
  template <class F>
  static HWY_INLINE void for_all(const F& f) {
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v)
        f(r, v);
  }
};

/// Adds some groups of inputs of R rows of x times P panels from w on to sums,
/// which are none before the first.
template <class Products, int R, int P>
HWY_INLINE void sum_panels(
    const LinearBlock& block,
    Groups groups,
    const typename Products::Input* x,
    const typename Products::Weight* w,
    typename Products::Sum* to) {
  constexpr int kUnroll = 4;
  constexpr int64_t kWeights = kPanel * Products::kGroup;
  constexpr int64_t kBytes = sizeof(typename Products::Weight);
  const int64_t pitch = block.groups * kWeights;
  InputRows<Products, R> rows(x + groups.first * Products::kGroup, block.x_stride);
  w += groups.first * kWeights;
  PanelSums<Products, R, P> sums;
  if (groups.first == 0)
    sums.set_zero();
  else
    sums.load(to);
  int64_t left = groups.count;
  for (; left >= kUnroll; left -= kUnroll) {
    // Where a line takes many products, few loads are on their way at a time,
    // and the processor's own guesses end with the page.
    if constexpr (P == 1)
      prefetch_lines(w + kBytesAhead / kBytes, kUnroll * kWeights * kBytes);
#pragma GCC unroll 4
    for (int k = 0; k < kUnroll; ++k)
      sums.add(rows, w, pitch, k);
    rows.advance(kUnroll);
    w = scalar(w + kUnroll * kWeights);
  }
  for (; left > 0; --left) {
    sums.add(rows, w, pitch, 0);
    rows.advance(1);
    w = scalar(w + kWeights);
  }
  sums.store(to);
}

/// The same with all panels of a block, from its `row`-th row on.
template <class Products, int R>
void sum_rows(const LinearBlock& block, Groups groups, int64_t row, typename Products::Sum* sums) {
  constexpr int kAtOnce = kPanelsAtOnce<R>;
  const auto* const x =
      static_cast<const typename Products::Input*>(block.x) + row * block.x_stride;
  const auto* const panels = static_cast<const typename Products::Weight*>(block.panels);
  const int64_t size = block.groups * kPanel * Products::kGroup;
  int64_t p = 0;
  if constexpr (kAtOnce > 1)
    for (; p + kAtOnce <= block.panel_count; p += kAtOnce)
      sum_panels<Products, R, kAtOnce>(block, groups, x, panels + p * size, sums + p * kPanel);
  for (; p < block.panel_count; ++p)
    sum_panels<Products, R, 1>(block, groups, x, panels + p * size, sums + p * kPanel);
}

template <class Products>
using SumRows =
    void (*)(const LinearBlock& block, Groups groups, int64_t row, typename Products::Sum* sums);

/// sum_rows<R> at place R - 1.
template <class Products>
inline constexpr auto kSumRows = []<int... I>(std::integer_sequence<int, I...>) {
  return std::array<SumRows<Products>, sizeof...(I)>{sum_rows<Products, I + 1>...};
}
(std::make_integer_sequence<int, kLinearRows>());

template <class Products>
void multiply_block(const LinearBlock& block) {
  HWY_ALIGN typename Products::Sum sums[kMostRows * kSumStride];
  // Parts of nearly as many rows each: few rows leave multipliers idle.
  const int64_t parts = (block.rows + kLinearRows - 1) / kLinearRows;
  const auto begin = [&](int64_t part) { return block.rows * part / parts; };
  const bool waits = parts > 1 && block.rows <= kMostRows && block.groups >= 2 * kGroupsAtOnce;
  const int64_t together = waits ? parts : 1;
  const int64_t groups = waits ? kGroupsAtOnce : block.groups;
  for (int64_t first = 0; first < parts; first += together) {
    const int64_t row = begin(first), end = begin(first + together);
    for (int64_t k = 0; k < block.groups; k += groups)
      for (int64_t part = first; part < first + together; ++part)
        kSumRows<Products>[static_cast<size_t>(begin(part + 1) - begin(part) - 1)](
            block,
            {k, HWY_MIN(groups, block.groups - k)},
            begin(part),
            sums + (begin(part) - row) * kSumStride);
    end_block(block, row, end - row, sums);
  }
}

}  // namespace seqconv::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
