#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include "libtorch/nn/dropout_plan.h"
#include "libtorch/nn/init.h"
#include "libtorch/nn/state.h"
#include "seqconv/ops/conv_options.h"

namespace seqconv::internal {

/// Options of LightConv and DynamicConv.
struct ConvOptions {
  int64_t channels = 0;        ///< C
  int64_t query_channels = 0;  ///< DynamicConv: Q of its query, 0 = C
  int64_t heads = 1;           ///< H, divides C
  int64_t kernel_size = 3;     ///< K
  bool causal = false;         ///< K-1 taps to the left, else K/2
  double weight_dropout = 0;   ///< DropConnect
  ops::Normalization normalization = ops::Normalization::kSoftmax;
  bool renormalize_edges = false;  ///< taps inside the sequence sum to 1
  bool bias = false;               ///< [C], added to every position; starts as zero
  bool filter_bias = false;        ///< DynamicConv: [H*K], of its linear map

  int64_t padding_left() const { return causal ? kernel_size - 1 : kernel_size / 2; }
};

/// Lightweight convolution (Wu et al. 2019): weight [H, K], normalised over K
/// (softmax unless said otherwise), initialised Xavier-uniform with the fans of
/// [H, 1, K]. With H = C and no normalisation it is the depthwise convolution.
class LightConvImpl : public torch::nn::Module {
 public:
  explicit LightConvImpl(const ConvOptions& options, const InitGenerator& generator = {});

  /// x [B, T, C], lengths [B] or empty -> [B, T, C].
  at::Tensor forward(
      const at::Tensor& x, const std::optional<at::Tensor>& lengths, DropoutPlan& plan) const;

  /// Causal only: the next inputs x [N, T', C] -> [N, T', C].
  at::Tensor step(const at::Tensor& x, ConvState& state, const StepPosition& position) const;
  ConvState initial_state(int64_t rows) const;

  at::Tensor weight;
  at::Tensor bias;  ///< [C], or undefined

 private:
  ConvOptions options_;
};
TORCH_MODULE(LightConv);

}  // namespace seqconv::internal
