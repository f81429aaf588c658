#pragma once

#include "libtorch/nn/lightconv.h"
#include "libtorch/nn/linear.h"

namespace seqconv::internal {

struct TalkOptions {
  int64_t channels = 0;       ///< C
  int64_t heads = 1;          ///< H, divides C
  int64_t max_offset = 3;     ///< furthest reach a side, in tokens
  bool causal = false;        ///< then to the left only
  double offset_dropout = 0;  ///< inverted dropout on the relative offsets
};

/// Time-aware large kernel convolution (Lioutas & Guo 2020): offsets =
/// sigmoid(linear(x)), [2H, C] (left, then right) or [H, C] when causal, with
/// bias; weight and bias U(-1/sqrt(C), 1/sqrt(C)).
class TalkImpl : public torch::nn::Module {
 public:
  explicit TalkImpl(const TalkOptions& options, const InitGenerator& generator = {});

  /// x [B, T, C], lengths [B] or empty -> [B, T, C].
  at::Tensor forward(
      const at::Tensor& x, const std::optional<at::Tensor>& lengths, DropoutPlan& plan) const;

  /// Causal only: the next inputs x [N, T', C] -> [N, T', C].
  at::Tensor step(const at::Tensor& x, ConvState& state, const StepPosition& position) const;
  ConvState initial_state(int64_t rows) const;

 private:
  /// x [B, T, C] -> [B, T, 2H] or, causal, [B, T, H] in (0, 1); in float32
  /// where x has 16 bits: how far a window reaches is a product with it.
  at::Tensor relative_offsets(const at::Tensor& x) const;

  TalkOptions options_;
  Linear offsets_{nullptr};
};
TORCH_MODULE(Talk);

}  // namespace seqconv::internal
