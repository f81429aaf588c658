#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <string>
#include <vector>

namespace seqconv::internal {

/// Says where one parameter lives in the flat buffers.
struct ParameterSlot {
  std::string name;
  std::vector<int64_t> shape;
  int64_t offset = 0;  ///< first element
  int64_t count = 0;
};

/// Moves all parameters of a module into one buffer [P] and their gradients
/// into another, so that clipping, optimiser steps, sums over processes and
/// checkpoints are single passes. Each slot starts at a multiple of 16
/// elements; the gaps stay zero. Tied parameters have one slot. The module's
/// parameters (and their .grad) become views, on their device.
class FlatParameters {
 public:
  explicit FlatParameters(torch::nn::Module& module);

  const at::Tensor& values() const { return values_; }        ///< [P] float32
  const at::Tensor& gradients() const { return gradients_; }  ///< [P] float32
  const std::vector<ParameterSlot>& slots() const { return slots_; }
  /// Number of parameters without the gaps.
  int64_t parameter_count() const;

 private:
  at::Tensor values_;
  at::Tensor gradients_;
  std::vector<ParameterSlot> slots_;
};

}  // namespace seqconv::internal
