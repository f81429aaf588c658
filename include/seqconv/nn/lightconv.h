#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include "seqconv/nn/dropout_plan.h"
#include "seqconv/nn/init.h"
#include "seqconv/nn/state.h"

namespace seqconv {

/// Options of LightConv and DynamicConv.
struct ConvOptions {
  int64_t channels = 0;       ///< C
  int64_t heads = 1;          ///< H, divides C
  int64_t kernel_size = 3;    ///< K
  bool causal = false;        ///< K-1 taps to the left, else K/2
  double weight_dropout = 0;  ///< DropConnect

  int64_t padding_left() const {
    return causal ? kernel_size - 1 : kernel_size / 2;
  }
};

/// Lightweight convolution (Wu et al. 2019): weight [H, K], softmax over K,
/// initialised Xavier-uniform with the fans of [H, 1, K].
class LightConvImpl : public torch::nn::Module {
 public:
  explicit LightConvImpl(
      const ConvOptions& options,
      const InitGenerator& generator = {});

  /// x [B, T, C], lengths [B] or empty -> [B, T, C].
  at::Tensor forward(
      const at::Tensor& x,
      const std::optional<at::Tensor>& lengths,
      DropoutPlan& plan) const;

  /// Causal only: the next inputs x [N, T', C] -> [N, T', C].
  at::Tensor step(
      const at::Tensor& x,
      ConvState& state,
      const StepPosition& position) const;
  ConvState initial_state(int64_t rows) const;

  at::Tensor weight;

 private:
  ConvOptions options_;
};
TORCH_MODULE(LightConv);

}  // namespace seqconv
