#pragma once

#include <cstdint>
#include <memory>

#include "seqconv/kernels/isa.h"
#include "seqconv/kernels/parallel_for.h"

/// Products of rows with weights that do not change.
namespace seqconv::kernels {

/// What a linear map ends with, besides bias and residual.
enum class LinearEnd {
  kNone,
  kRelu,
  kSwish,  ///< z * sigmoid(z)
  kGlu     ///< a * sigmoid(b) of the halves of the outputs
};

/// A weight matrix [N, K], packed for one instruction set. Copies share it.
class PackedLinear {
 public:
  PackedLinear() = default;
  /// weight [outputs, inputs], row-major. A map that ends with kGlu needs
  /// `gated`, and no other does: it has 2N rows, of which b of output n is row
  /// N + n.
  PackedLinear(
      const float* weight,
      int64_t outputs,
      int64_t inputs,
      bool gated = false,
      Isa isa = best_isa());

  int64_t outputs() const { return outputs_; }  ///< 2N when gated
  int64_t inputs() const { return inputs_; }    ///< K
  bool gated() const { return gated_; }
  /// Memory of the packed weights.
  int64_t bytes() const { return size_ * static_cast<int64_t>(sizeof(float)); }

 private:
  friend void packed_linear(
      const PackedLinear& weight,
      const struct LinearPass& pass,
      const ParallelFor& parallel_for);

  int64_t outputs_ = 0;
  int64_t inputs_ = 0;
  bool gated_ = false;
  Isa isa_ = Isa::kBaseline;
  int64_t size_ = 0;
  std::shared_ptr<float> data_;  ///< never changes: copies share it
};

/// y = residual + end(x W^T + bias) over rows. Nothing overlaps, but that y may
/// be the residual.
struct LinearPass {
  int64_t rows = 0;
  const float* x = nullptr;         ///< [rows, K]
  const float* bias = nullptr;      ///< [outputs] or null
  const float* residual = nullptr;  ///< [rows, N] or null
  LinearEnd end = LinearEnd::kNone;
  float* y = nullptr;    ///< [rows, N]
  int64_t y_stride = 0;  ///< elements from one row of y to the next; 0: N
};

/// Every output is one sum over k in ascending order: it depends on its row and
/// its weights alone, never on the number of rows or threads.
void packed_linear(
    const PackedLinear& weight,
    const LinearPass& pass,
    const ParallelFor& parallel_for);

}  // namespace seqconv::kernels
