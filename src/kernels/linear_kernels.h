#pragma once

#include <cstdint>

#include "seqconv/kernels/isa.h"
#include "seqconv/kernels/packed_linear.h"

/// The inner loops of packed_linear(), written in packed_linear-inl.h and
/// compiled for each instruction set in linear_kernels.cpp.
namespace seqconv::kernels {

/// Most panels of one block.
inline constexpr int64_t kPanelGroup = 4;

/// Some rows times some panels. A panel holds the weights of a few
/// neighbouring outputs, [K, panel]; the next one follows. Of gated weights
/// every other panel is one of gates, those of the panel before.
struct LinearBlock {
  const float* x = nullptr;  ///< [rows, K]
  int64_t x_stride = 0;
  int64_t rows = 0;
  const float* panels = nullptr;
  int64_t panel_count = 0;  ///< <= kPanelGroup; even where gated
  int64_t inputs = 0;
  int64_t outputs = 0;  ///< which the panels are of: the last may have fewer
  LinearEnd end = LinearEnd::kNone;
  const float* bias = nullptr;       ///< [outputs] or null
  const float* gate_bias = nullptr;  ///< [outputs], with bias and kGlu
  const float* residual = nullptr;   ///< [rows, outputs] or null
  int64_t residual_stride = 0;
  float* y = nullptr;  ///< [rows, outputs]
  int64_t y_stride = 0;
};

struct LinearKernels {
  int64_t panel;  ///< outputs of a panel
  int64_t rows;   ///< of which the sums of a panel fit into registers
  void (*multiply)(const LinearBlock& block);
};

const LinearKernels& linear_kernels(Isa isa);

}  // namespace seqconv::kernels
