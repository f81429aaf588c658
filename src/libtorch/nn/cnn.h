#pragma once

#include "libtorch/nn/lightconv.h"

namespace seqconv::internal {

struct CnnOptions {
  int64_t channels = 0;     ///< C, in and out
  int64_t kernel_size = 3;  ///< K
  bool causal = false;      ///< K-1 taps to the left, else K/2
  bool bias = false;        ///< [C]; starts as zero

  int64_t padding_left() const { return causal ? kernel_size - 1 : kernel_size / 2; }
};

/// An ordinary convolution in plain tensor algebra, one matrix product per tap, kept as the
/// definition. x [B, T, C], weight [C, C, K], bias [C] or undefined.
at::Tensor cnn_reference(
    const at::Tensor& x,
    const at::Tensor& weight,
    const at::Tensor& bias,
    int64_t padding_left,
    const std::optional<at::Tensor>& lengths);

/// The ordinary ("non-separable") convolution over time,
///   y[t] = bias + sum_j weight[:, :, j] @ x[t - padding_left + j],
/// x zero outside the sequence: what Wu et al. 2019 compare against (table 3,
/// "CNN"). weight [C out, C in, K], Xavier-uniform with fans C * K.
class CnnImpl : public torch::nn::Module {
 public:
  explicit CnnImpl(const CnnOptions& options, const InitGenerator& generator = {});

  /// x [B, T, C], lengths [B] or empty -> [B, T, C]. Rows at and beyond a
  /// length count as zero and are zero.
  at::Tensor forward(const at::Tensor& x, const std::optional<at::Tensor>& lengths) const;

  /// Causal only: the next inputs x [N, T', C] -> [N, T', C]. The ring is as
  /// in ops::lightconv_step.
  at::Tensor step(const at::Tensor& x, ConvState& state, const StepPosition& position) const;
  ConvState initial_state(int64_t rows) const;

  at::Tensor weight;
  at::Tensor bias;  ///< [C], or undefined

 private:
  /// padded [B, T + K - 1, C] -> [B, T, C].
  at::Tensor convolved(const at::Tensor& padded) const;

  CnnOptions options_;
};
TORCH_MODULE(Cnn);

}  // namespace seqconv::internal
