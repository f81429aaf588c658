#pragma once

#include "libtorch/nn/dropout_plan.h"
#include "libtorch/nn/linear.h"
#include "libtorch/nn/short_conv.h"
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
  /// Behind fc1 and behind fc2; taps are predicted from what these read.
  std::optional<ShortConvOptions> conv1{};
  std::optional<ShortConvOptions> conv2{};
};

/// The past of a network's short convolutions, where there are any.
struct FeedForwardState {
  ShortConvPast conv1;
  ShortConvPast conv2;

  void reorder(const at::Tensor& parents) {
    conv1.reorder(parents);
    conv2.reorder(parents);
  }
};

/// fc2(dropout(activation(fc1(x)))), where there are short convolutions with one
/// behind fc1 and one behind fc2.
class FeedForwardImpl : public torch::nn::Module {
 public:
  explicit FeedForwardImpl(const FeedForwardOptions& options, const InitGenerator& generator = {});

  /// x [B, T, C], lengths [B] or empty (nothing is padded) -> [B, T, C].
  at::Tensor forward(
      const at::Tensor& x, const std::optional<at::Tensor>& lengths, DropoutPlan& plan) const;
  /// The next inputs x [N, T', C] -> [N, T', C].
  at::Tensor step(const at::Tensor& x, FeedForwardState& state) const;
  FeedForwardState initial_state(int64_t rows) const;

 private:
  at::Tensor activated(const at::Tensor& hidden, DropoutPlan& plan) const;

  FeedForwardOptions options_;
  Linear fc1_{nullptr};
  Linear fc2_{nullptr};
  ShortConv conv1_{nullptr};
  ShortConv conv2_{nullptr};
};
TORCH_MODULE(FeedForward);

}  // namespace seqconv::internal
