#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include "libtorch/nn/dropout_plan.h"
#include "libtorch/nn/feed_forward.h"
#include "libtorch/nn/linear.h"
#include "libtorch/nn/state.h"

namespace seqconv::internal {

/// The gate of average attention (Zhang et al. 2018):
///   [i; f] = sigmoid([x; g] @ weight^T + bias), y = i * x + f * g.
/// x and g [B, T, C], weight [2C, 2C] with the input gate's rows first, bias
/// [2C] -> [B, T, C].
at::Tensor average_attention_gate(
    const at::Tensor& x, const at::Tensor& g, const at::Tensor& weight, const at::Tensor& bias);

/// The past of average attention: the sums of all inputs, [N, C] float64, whose
/// size does not grow.
struct AverageState {
  at::Tensor sums;

  void reorder(const at::Tensor& parents);
};

struct AverageAttentionOptions {
  int64_t channels = 0;           ///< C
  int64_t hidden = 0;             ///< width of the feed-forward network; 0: none
  double activation_dropout = 0;  ///< after its ReLU
};

/// Average attention (Zhang et al. 2018): the cumulative average of the inputs,
/// a linear-ReLU-linear network on it ("ffn"), and a gate between input and
/// result ("gate"). Always causal: position t sees positions 0 to t. Linear
/// maps begin Xavier-uniform with zero biases (semantics.md 8.19).
class AverageAttentionImpl : public torch::nn::Module {
 public:
  explicit AverageAttentionImpl(
      const AverageAttentionOptions& options, const InitGenerator& generator = {});

  /// x [B, T, C], lengths [B] or empty -> [B, T, C]. Rows at and beyond a
  /// length count as zero and are zero.
  at::Tensor forward(
      const at::Tensor& x, const std::optional<at::Tensor>& lengths, DropoutPlan& plan) const;

  /// The next inputs x [N, T', C] -> [N, T', C]. The cost does not depend on
  /// how many there were.
  at::Tensor step(const at::Tensor& x, AverageState& state, const StepPosition& position) const;
  AverageState initial_state(int64_t rows) const;

 private:
  at::Tensor gated(const at::Tensor& x, const at::Tensor& average, DropoutPlan& plan) const;

  AverageAttentionOptions options_;
  FeedForward ffn_{nullptr};
  Linear gate_{nullptr};
};
TORCH_MODULE(AverageAttention);

}  // namespace seqconv::internal
