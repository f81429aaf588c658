#if defined(SEQCONV_KERNELS_PACKED_LINEAR_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SEQCONV_KERNELS_PACKED_LINEAR_INL_H
#undef SEQCONV_KERNELS_PACKED_LINEAR_INL_H
#else
#define SEQCONV_KERNELS_PACKED_LINEAR_INL_H
#endif

#include <array>
#include <utility>

#include "kernels/cache_line.h"
#include "kernels/exp-inl.h"
#include "kernels/linear_kernels.h"

/// Products of rows with packed weights. Sums of a few rows and outputs are
/// kept in registers for all of K, each in ascending order of k. They go
/// through a tile in the first-level cache to the end of the map, which is
/// written once: so an output has the same bits in blocks of any form.
HWY_BEFORE_NAMESPACE();
namespace seqconv::kernels::HWY_NAMESPACE {

/// Vectors and outputs of a panel.
inline constexpr int kPanelVectors = 2;
inline constexpr int kPanel = kPanelVectors * kLanes<float>;

/// Vectors of sums. The other registers hold weights and a row's input, and
/// products where these are not fused.
inline constexpr int kSumVectors = kRegisters == 32 ? 24
    : HWY_TARGET == HWY_AVX2                        ? 12
                                                    : 8;
inline constexpr int kLinearRows = kSumVectors / kPanelVectors;

/// Of many rows so many inputs are multiplied before the next ones are: they,
/// and their weights, come from near caches then. Sums wait in between.
inline constexpr int64_t kInputsAtOnce = 512;
/// Rows of which they do.
inline constexpr int64_t kMostRows = 64;
static_assert(kMostRows >= kLinearRows);

/// From a row of sums to the next: [rows, kPanelGroup * kPanel].
inline constexpr int64_t kSumStride = kPanelGroup * kPanel;

/// Some inputs of all.
struct Inputs {
  int64_t first, count;
};

/// How far ahead of their use weights are fetched: 2 KB of a panel, then of the
/// next one.
inline constexpr int64_t kWeightsAhead = 512;

/// Panels of which R rows are multiplied at once: enough sums that none waits
/// for itself.
template <int R>
inline constexpr int kPanelsAtOnce = R * 4 * kPanelVectors <= kSumVectors ? 4
    : R * 2 * kPanelVectors <= kSumVectors                                ? 2
                                                                          : 1;

/// R rows of x, at one input after the other.
template <int R>
class InputRows {
 public:
  HWY_INLINE InputRows(const float* x, int64_t stride) : stride_(stride) {
#pragma GCC unroll 4
    for (int i = 0; i < kPointers; ++i)
      at_[i] = x + 3 * i * stride;
  }
  HWY_INLINE Vec<float> row(int r, int k) const {
    return in_register(hn::Set(Tag<float>(), at_[r / 3][r % 3 * stride_ + k]));
  }
  HWY_INLINE void advance(int count) {
#pragma GCC unroll 4
    for (int i = 0; i < kPointers; ++i)
      at_[i] = scalar(at_[i] + count);
  }

 private:
  /// One for three rows: there are not enough registers for all.
  static constexpr int kPointers = (R + 2) / 3;
  const float* at_[kPointers];
  int64_t stride_;
};

/// R rows times P panels.
template <int R, int P>
struct PanelSums {
  static constexpr int V = P * kPanelVectors;
  Vec<float> sum[R][V];

  HWY_INLINE void set_zero() {
    for_all([&](int r, int v) HWY_ATTR { sum[r][v] = hn::Zero(Tag<float>()); });
  }
  HWY_INLINE void load(const float* sums) {
    for_all([&](int r, int v) HWY_ATTR {
      sum[r][v] = hn::Load(Tag<float>(), sums + place(r, v));
    });
  }
  HWY_INLINE void store(float* sums) const {
    for_all([&](int r, int v) HWY_ATTR {
      hn::Store(sum[r][v], Tag<float>(), sums + place(r, v));
    });
  }

  /// Adds the products of the k-th input from where x and w are; panels are
  /// `pitch` apart.
  HWY_INLINE void
  add(const InputRows<R>& x, const float* w, int64_t pitch, int k) {
    const auto weight = [&](int v) HWY_ATTR {
      return in_register(hn::Load(
          Tag<float>(),
          w + v / kPanelVectors * pitch + k * kPanel +
              v % kPanelVectors * kLanes<float>));
    };
    // What there is less of stays in registers.
    if constexpr (V < R) {
      Vec<float> weights[V];
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v)
        weights[v] = weight(v);
#pragma GCC unroll 12
      for (int r = 0; r < R; ++r) {
        const auto input = x.row(r, k);
#pragma GCC unroll 8
        for (int v = 0; v < V; ++v)
          sum[r][v] = hn::MulAdd(weights[v], input, sum[r][v]);
      }
    } else {
      Vec<float> inputs[R];
#pragma GCC unroll 12
      for (int r = 0; r < R; ++r)
        inputs[r] = x.row(r, k);
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) {
        const auto weights = weight(v);
#pragma GCC unroll 12
        for (int r = 0; r < R; ++r)
          sum[r][v] = hn::MulAdd(weights, inputs[r], sum[r][v]);
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

/// Adds some inputs of R rows of x times P panels from w on to sums, which are
/// none before the first input.
template <int R, int P>
HWY_INLINE void sum_panels(
    const LinearBlock& block,
    Inputs inputs,
    const float* x,
    const float* w,
    float* to) {
  constexpr int kUnroll = 4;
  const int64_t pitch = block.inputs * kPanel;
  InputRows<R> rows(x + inputs.first, block.x_stride);
  w += inputs.first * kPanel;
  PanelSums<R, P> sums;
  if (inputs.first == 0)
    sums.set_zero();
  else
    sums.load(to);
  int64_t left = inputs.count;
  for (; left >= kUnroll; left -= kUnroll) {
    // Where a line takes many products, few loads are on their way at a time,
    // and the processor's own guesses end with the page.
    if constexpr (P == 1)
      prefetch_lines(w + kWeightsAhead, kUnroll * kPanel * int{sizeof(float)});
#pragma GCC unroll 4
    for (int k = 0; k < kUnroll; ++k)
      sums.add(rows, w, pitch, k);
    rows.advance(kUnroll);
    w = scalar(w + kUnroll * kPanel);
  }
  for (; left > 0; --left) {
    sums.add(rows, w, pitch, 0);
    rows.advance(1);
    w = scalar(w + kPanel);
  }
  sums.store(to);
}

/// The same with all panels of a block.
template <int R>
void sum_rows(
    const LinearBlock& block,
    Inputs inputs,
    const float* x,
    float* sums) {
  constexpr int kAtOnce = kPanelsAtOnce<R>;
  const int64_t size = block.inputs * kPanel;
  int64_t p = 0;
  if constexpr (kAtOnce > 1)
    for (; p + kAtOnce <= block.panel_count; p += kAtOnce)
      sum_panels<R, kAtOnce>(
          block,
          inputs,
          x,
          block.panels + p * size,
          sums + p * kPanel);
  for (; p < block.panel_count; ++p)
    sum_panels<R, 1>(
        block,
        inputs,
        x,
        block.panels + p * size,
        sums + p * kPanel);
}

using SumRows = void (*)(
    const LinearBlock& block,
    Inputs inputs,
    const float* x,
    float* sums);

/// sum_rows<R> at place R - 1.
inline constexpr auto kSumRows =
    []<int... I>(std::integer_sequence<int, I...>) {
  return std::array<SumRows, sizeof...(I)>{sum_rows<I + 1>...};
}
(std::make_integer_sequence<int, kLinearRows>());

/// 1 / (1 + e^-z), in place, to four units of the last place; 0 where it is
/// below 2^-125. NaN stays NaN.
template <int N>
HWY_INLINE void sigmoids(Vec<float> (&z)[N]) {
  const Tag<float> d;
  // Below it e^-|z| is no normal number.
  const auto lowest = hn::Set(d, -87.0f), one = hn::Set(d, 1.0f);
  Vec<float> e[N];
#pragma GCC unroll 4
  for (int i = 0; i < N; ++i)
    e[i] = hn::Neg(hn::Abs(z[i]));
  exps_of_moderate<float>(e);
#pragma GCC unroll 4
  for (int i = 0; i < N; ++i) {
    const auto size = hn::Neg(hn::Abs(z[i]));
    e[i] = hn::IfThenZeroElse(hn::Lt(size, lowest), e[i]);
    const auto part = hn::IfThenElse(hn::Lt(z[i], hn::Zero(d)), e[i], one);
    const auto out = hn::Div(part, hn::Add(one, e[i]));
    z[i] = hn::IfThenElse(hn::IsNaN(z[i]), z[i], out);
  }
}

/// A panel's vectors of a row, in order: what is not there is never touched.
using PanelRow = Vec<float>[kPanelVectors];

/// Sums of a row and their bias, of `count` outputs.
HWY_INLINE void
load_sums(const float* sums, const float* bias, int64_t count, PanelRow& z) {
  constexpr int L = kLanes<float>;
#pragma GCC unroll 2
  for (int v = 0; v < kPanelVectors; ++v) {
    z[v] = hn::Load(Tag<float>(), sums + v * L);
    if (bias != nullptr && count > v * L)
      z[v] = hn::Add(z[v], load_some<float>(bias + v * L, count - v * L));
  }
}

template <LinearEnd kEnd>
HWY_INLINE void end_sums(PanelRow& z, PanelRow& gates) {
  const Tag<float> d;
  if constexpr (kEnd == LinearEnd::kSwish || kEnd == LinearEnd::kGlu)
    sigmoids(gates);
#pragma GCC unroll 2
  for (int v = 0; v < kPanelVectors; ++v) {
    if constexpr (kEnd == LinearEnd::kRelu)
      z[v] = hn::IfThenZeroElse(hn::Lt(z[v], hn::Zero(d)), z[v]);
    else if constexpr (kEnd != LinearEnd::kNone)
      z[v] = hn::Mul(z[v], gates[v]);
  }
}

/// Sums -> rows of y from `row` on.
template <LinearEnd kEnd>
void end_rows(
    const LinearBlock& block,
    int64_t row,
    int64_t rows,
    const float* sums) {
  constexpr int L = kLanes<float>;
  constexpr int kStep = kEnd == LinearEnd::kGlu ? 2 : 1;
  const auto from = [](const float* p, int64_t n) {
    return p == nullptr ? p : p + n;
  };
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t n = 0; n < block.outputs; n += kPanel) {
      const float* const panel = sums + r * kSumStride + kStep * n;
      const int64_t count = block.outputs - n;
      PanelRow z, gates;
      load_sums(panel, from(block.bias, n), count, z);
      if constexpr (kEnd == LinearEnd::kGlu)
        load_sums(panel + kPanel, from(block.gate_bias, n), count, gates);
      else
        std::copy(z, z + kPanelVectors, gates);
      end_sums<kEnd>(z, gates);
#pragma GCC unroll 2
      for (int v = 0; v < kPanelVectors; ++v) {
        if (v * L >= count)
          break;
        const int64_t c = n + v * L;
        if (block.residual != nullptr) {
          const float* const residual =
              block.residual + (row + r) * block.residual_stride + c;
          z[v] = hn::Add(load_some<float>(residual, count - v * L), z[v]);
        }
        store_some<float>(
            z[v],
            block.y + (row + r) * block.y_stride + c,
            count - v * L);
      }
    }
}

HWY_INLINE void end_block(
    const LinearBlock& block,
    int64_t row,
    int64_t rows,
    const float* sums) {
  switch (block.end) {
    case LinearEnd::kNone:
      return end_rows<LinearEnd::kNone>(block, row, rows, sums);
    case LinearEnd::kRelu:
      return end_rows<LinearEnd::kRelu>(block, row, rows, sums);
    case LinearEnd::kSwish:
      return end_rows<LinearEnd::kSwish>(block, row, rows, sums);
    case LinearEnd::kGlu:
      return end_rows<LinearEnd::kGlu>(block, row, rows, sums);
  }
}

inline void multiply_block(const LinearBlock& block) {
  HWY_ALIGN float sums[kMostRows * kSumStride];
  // Parts of nearly as many rows each: few rows leave multipliers idle.
  const int64_t K = block.inputs;
  const int64_t parts = (block.rows + kLinearRows - 1) / kLinearRows;
  const auto begin = [&](int64_t part) { return block.rows * part / parts; };
  const bool waits =
      parts > 1 && block.rows <= kMostRows && K >= 2 * kInputsAtOnce;
  const int64_t together = waits ? parts : 1;
  const int64_t inputs = waits ? kInputsAtOnce : K;
  for (int64_t first = 0; first < parts; first += together) {
    const int64_t row = begin(first), end = begin(first + together);
    for (int64_t k = 0; k < K; k += inputs)
      for (int64_t part = first; part < first + together; ++part)
        kSumRows[static_cast<size_t>(begin(part + 1) - begin(part) - 1)](
            block,
            {k, HWY_MIN(inputs, K - k)},
            block.x + begin(part) * block.x_stride,
            sums + (begin(part) - row) * kSumStride);
    end_block(block, row, end - row, sums);
  }
}

}  // namespace seqconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
