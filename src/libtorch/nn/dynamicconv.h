#pragma once

#include "libtorch/nn/lightconv.h"

namespace seqconv::internal {

/// Dynamic convolution (Wu et al. 2019): a linear map of the input itself, or
/// of another tensor of Q channels (the query), [H*K, Q] without bias unless
/// asked for, predicts the kernel of every position. The map begins
/// U(-1/sqrt(Q), 1/sqrt(Q)), its bias too.
class DynamicConvImpl : public torch::nn::Module {
 public:
  explicit DynamicConvImpl(const ConvOptions& options, const InitGenerator& generator = {});

  /// x [B, T, C], lengths [B] or empty -> [B, T, C].
  at::Tensor forward(
      const at::Tensor& x, const std::optional<at::Tensor>& lengths, DropoutPlan& plan) const;
  /// The same with the kernels predicted from query [B, T, Q].
  at::Tensor forward(
      const at::Tensor& x,
      const at::Tensor& query,
      const std::optional<at::Tensor>& lengths,
      DropoutPlan& plan) const;

  /// Causal only: the next inputs x [N, T', C] -> [N, T', C].
  at::Tensor step(const at::Tensor& x, ConvState& state, const StepPosition& position) const;
  /// The same with the next positions' query [N, T', Q].
  at::Tensor step(
      const at::Tensor& x,
      const at::Tensor& query,
      ConvState& state,
      const StepPosition& position) const;
  ConvState initial_state(int64_t rows) const;

  at::Tensor weight;       ///< "weight_linear" [H*K, Q], row h*K + j is tap j
  at::Tensor filter_bias;  ///< "weight_linear_bias" [H*K], or undefined
  at::Tensor bias;         ///< "bias" [C] of the convolution, or undefined

 private:
  int64_t query_channels() const;
  at::Tensor logits(const at::Tensor& query) const;

  ConvOptions options_;
};
TORCH_MODULE(DynamicConv);

}  // namespace seqconv::internal
