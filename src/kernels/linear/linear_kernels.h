#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/isa.h"
#include "kernels/packed_linear.h"

/// The inner loops of packed_linear(), written in packed_linear-inl.h and
/// compiled for each instruction set in linear_kernels.cpp.
namespace seqconv::internal::kernels {

/// Most panels of one block.
inline constexpr int64_t kPanelGroup = 4;

/// What belongs to single outputs.
struct OutputSides {
  const float* bias = nullptr;  ///< [outputs] or null
  /// For int8 alone: a sum less its compensation (zero point times the sum of the channel's
  /// weights), times the row's scale and the channel's, is the output.
  const float* scales = nullptr;           ///< [outputs]
  const int32_t* compensations = nullptr;  ///< [outputs]

  /// Those from the n-th output on.
  OutputSides from(int64_t n) const {
    return {
        bias == nullptr ? bias : bias + n,
        scales == nullptr ? scales : scales + n,
        compensations == nullptr ? compensations : compensations + n};
  }
};

/// Some rows times some panels. A panel holds the weights of a few
/// neighbouring outputs, [K / group, panel, group]; the next one follows. Of
/// gated weights every other panel is one of gates, those of the panel before.
struct LinearBlock {
  const void* x = nullptr;            ///< [rows, groups * group] of inputs
  int64_t x_stride = 0;               ///< in inputs
  const float* row_scales = nullptr;  ///< [rows] of int8, or null
  int64_t rows = 0;
  const void* panels = nullptr;
  int64_t panel_count = 0;  ///< <= kPanelGroup; even where gated
  int64_t groups = 0;
  int64_t outputs = 0;  ///< which the panels are of: the last may have fewer
  LinearEnd end = LinearEnd::kNone;
  OutputSides sides;
  OutputSides gate_sides;           ///< with kGlu
  const float* residual = nullptr;  ///< [rows, outputs] or null
  int64_t residual_stride = 0;
  float* y = nullptr;  ///< [rows, outputs]
  int64_t y_stride = 0;
};

struct LinearKernels {
  int64_t panel;         ///< outputs of a panel
  int64_t rows;          ///< of which the sums of a panel fit into registers
  int64_t group;         ///< inputs whose products go into a sum at once
  int64_t group_step;    ///< groups of a panel are a multiple of it
  int64_t weight_bytes;  ///< of one weight
  int64_t input_bytes;   ///< of one input
  /// Added to quantized inputs so that they have no sign; 0 where they may have one.
  int32_t zero_point;
  /// Brings a row x [K] into the form of inputs, writing up to kRowRoom more,
  /// and returns its scale. Null: inputs are x as it is.
  float (*prepare)(const float* x, int64_t K, void* row);
  void (*multiply)(const LinearBlock& block);
};

/// The rule of int8, symmetric: q = round(x * inverse), to nearest with ties to even, in
/// [-127, 127], and x is q * scale. Weights have one scale per output channel, activations one
/// per row, found as the row comes.
struct Int8Scale {
  float scale;
  float inverse;

  /// largest: of the row's magnitudes. A row of nothing above 1e-30 has the scale 0, as 127
  /// over its largest might overflow; NaN and infinity spoil the whole row, as they would a sum.
  explicit Int8Scale(float largest)
      : scale(
            largest < kLeastRow          ? 0
                : std::isfinite(largest) ? largest / kMost
                                         : NAN),
        inverse(largest >= kLeastRow && std::isfinite(largest) ? kMost / largest : 0) {}

  static constexpr float kMost = 127;
  static constexpr float kLeastRow = 1e-30F;
};

/// Inputs that a row may be longer by.
inline constexpr int64_t kRowRoom = 16;

const LinearKernels& linear_kernels(WeightType type, LinearTarget target);

}  // namespace seqconv::internal::kernels
