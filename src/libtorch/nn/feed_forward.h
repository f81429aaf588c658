#pragma once

#include "libtorch/nn/dropout_plan.h"
#include "libtorch/nn/linear.h"
#include "libtorch/ops/elementwise.h"

namespace seqconv::internal {

/// Says how fc1 and fc2 [out, in] begin (semantics.md 8.19).
enum class FeedForwardInit {
  /// Xavier, biases zero: as every linear map around a convolution.
  kXavier,
  /// U(-b, b), b = sqrt(1 / in), biases too; the weights are half as large: the
  /// Transformer that fairseq trains, and what post-norm self-attention needs
  /// to
  /// learn as fast.
  kFanIn,
};

struct FeedForwardOptions {
  int64_t channels = 0;  ///< C
  int64_t hidden = 0;
  ops::Activation activation = ops::Activation::kRelu;
  double activation_dropout = 0;
  FeedForwardInit init = FeedForwardInit::kXavier;
};

/// fc2(dropout(activation(fc1(x)))).
class FeedForwardImpl : public torch::nn::Module {
 public:
  explicit FeedForwardImpl(const FeedForwardOptions& options, const InitGenerator& generator = {});

  /// x [B, T, C] -> [B, T, C].
  at::Tensor forward(const at::Tensor& x, DropoutPlan& plan) const;

 private:
  FeedForwardOptions options_;
  Linear fc1_{nullptr};
  Linear fc2_{nullptr};
};
TORCH_MODULE(FeedForward);

}  // namespace seqconv::internal
