#pragma once

#include <torch/arg.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <optional>

struct NewMixerOptions {
  NewMixerOptions(int64_t channels) : channels_(channels) {}
  TORCH_ARG(int64_t, channels);         ///< C
  TORCH_ARG(int64_t, heads) = 1;        ///< H, divides C
  TORCH_ARG(int64_t, kernel_size) = 4;  ///< K: the present and the K - 1 inputs before it
};

/// All that a mixer remembers of N rows; its size does not grow with the sequence.
struct NewMixerState {
  at::Tensor window;    ///< [N, K-1, C], the last values, a ring over time
  at::Tensor position;  ///< [1] int64, the number of inputs already seen
};

/// New row r continues old row rows[r], rows [N'] int64: N may change. For a beam search.
void reorder(NewMixerState& state, const at::Tensor& rows);

/// A gated short convolution, causal, with kernels predicted at every position:
///   q, v = W_qv x           [B, T, C] each
///   w = W_taps x + b        [B, T, H, K], tap K-1 is the present
///   y = W_out (q * dynamicconv(v, softmax(w)))
/// with heads of C/H neighbouring channels that share a kernel, and x zero before the
/// sequence. With W_taps = 0 all positions share the kernels: a gated lightconv. Errors are
/// those of ops::dynamicconv.
class NewMixerImpl : public torch::nn::Cloneable<NewMixerImpl> {
 public:
  explicit NewMixerImpl(const NewMixerOptions& options);
  void reset() override;

  /// x [B, T, C] -> [B, T, C]. lengths [B], int64 or int32, optional: positions at and beyond
  /// a row's length count as zero and give zero.
  at::Tensor forward(const at::Tensor& x, const std::optional<at::Tensor>& lengths = {});

  NewMixerState initial_state(int64_t rows) const;
  /// The next T' >= 1 inputs x [N, T', C] -> [N, T', C]: what forward gives for them, in a
  /// time that does not depend on how many came before. Changes the state in place. No gradient.
  at::Tensor step(const at::Tensor& x, NewMixerState& state);

  NewMixerOptions options;
  torch::nn::Linear qv{nullptr};    ///< [2C, C], no bias
  torch::nn::Linear taps{nullptr};  ///< [H*K, C], row h*K + j is tap j; bias [H*K]
  torch::nn::Linear out{nullptr};   ///< [C, C], no bias, so that padding stays zero

 private:
  struct Projected {
    at::Tensor gate, value;  ///< [B, T, C]
    at::Tensor logits;       ///< [B, T, H, K]
  };
  Projected project(const at::Tensor& x);
};
TORCH_MODULE(NewMixer);
