#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <optional>

#include "libtorch/nn/init.h"
#include "libtorch/nn/state.h"
#include "seqconv/ops/short_conv.h"

namespace seqconv::internal {

struct ShortConvOptions {
  int64_t channels = 0;        ///< C
  int64_t query_channels = 0;  ///< Q that taps are predicted from
  int64_t groups = 1;          ///< G of static taps, divides C
  int64_t heads = 0;           ///< H of predicted taps, divides C; 0: there are none
  int64_t rank = 0;            ///< P of a narrow map in front of the predicting one; 0: none
  int64_t kernel_size = 4;     ///< K
  bool causal = false;         ///< K-1 taps to the left, else K/2
  bool bias = false;           ///< [C]; starts as zero
  ops::ConvActivation activation = ops::ConvActivation::kNone;
  bool residual = true;  ///< adds the input behind the activation

  int64_t padding_left() const { return causal ? kernel_size - 1 : kernel_size / 2; }
};

/// The past of a short convolution with every row's position; nothing where there
/// is no such convolution.
struct ShortConvPast {
  ops::ShortConvState state;

  void reorder(const at::Tensor& parents);
};

/// Short convolution of static taps, and of taps that linear maps without bias
/// predict for every position. Static taps begin U(-1/sqrt(K), 1/sqrt(K)), as
/// torch's own convolution, and the predicting map as zero: a model with it begins as one
/// without. Behind a narrow map, which begins U(-1/sqrt(Q), 1/sqrt(Q)), it begins
/// U(-0.1/sqrt(P), 0.1/sqrt(P)), as of zeros the narrow one would learn nothing.
class ShortConvImpl : public torch::nn::Module {
 public:
  explicit ShortConvImpl(const ShortConvOptions& options, const InitGenerator& generator = {});

  /// x [B, T, C], query [B, T, Q] (not read where no taps are predicted), lengths [B]
  /// or empty -> [B, T, C].
  at::Tensor forward(
      const at::Tensor& x, const at::Tensor& query, const std::optional<at::Tensor>& lengths) const;
  /// Causal only: the next inputs x [N, T', C], query [N, T', Q] -> [N, T', C].
  at::Tensor step(const at::Tensor& x, const at::Tensor& query, ShortConvPast& past) const;
  ShortConvPast initial_state(int64_t rows) const;

  at::Tensor weight;         ///< [G, K]
  at::Tensor narrow;         ///< [P, Q], or undefined
  at::Tensor weight_linear;  ///< [H*K, Q or P], row h*K + j is tap j; or undefined
  at::Tensor bias;           ///< [C], or undefined

 private:
  std::optional<at::Tensor> predicted(const at::Tensor& query) const;

  ShortConvOptions options_;
};
TORCH_MODULE(ShortConv);

/// Applies a short convolution that may not exist, which gives x itself and has no past.
at::Tensor convolve(
    const ShortConv& conv,
    const at::Tensor& x,
    const at::Tensor& query,
    const std::optional<at::Tensor>& lengths);
at::Tensor convolve_step(
    const ShortConv& conv, const at::Tensor& x, const at::Tensor& query, ShortConvPast& past);
ShortConvPast past_of(const ShortConv& conv, int64_t rows);

}  // namespace seqconv::internal
