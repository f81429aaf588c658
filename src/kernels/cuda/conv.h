#pragma once

#include "kernels/conv.h"
#include "kernels/cuda/storage.h"

/// The two convolutions on CUDA devices (see lightconv.h and dynamicconv.h of
/// the CPU).
namespace seqconv::internal::kernels::cuda {

/// DropConnect on taps as in kernels::TapDrop, the seed read on the device.
struct TapDrop {
  double p = 0;
  const int64_t* seed = nullptr;  ///< one element, or null
  const uint8_t* mask = nullptr;  ///< as the logits, or null
};

/// Which logits a convolution has: one row a head (lightconv, [H, K]), or one a
/// position too (dynamicconv, [B, T, H, K]).
enum class LogitsOf { kHead, kPosition };

/// The logits of a convolution, of x's type or
/// float beside 16-bit types.
struct Logits {
  const void* data = nullptr;
  Storage storage = Storage::kFloat;
};

/// Sizes and switches that all passes share. Taps are the softmax of logits, or
/// the logits themselves: other normalisations come before. renormalize_edges
/// (with softmax only) leaves taps that fall outside [0, length) out of it.
struct ConvSetup {
  ConvShape shape;
  LogitsOf logits_of = LogitsOf::kPosition;
  bool softmax = true;
  bool renormalize_edges = false;
  TapDrop drop;
  Logits logits;
  const int64_t* lengths = nullptr;  ///< [B] or null; clamped to 0 .. T
};

template <class S>
struct ConvForward {
  ConvSetup setup;
  const S* x = nullptr;         ///< [B, T, C]
  const float* bias = nullptr;  ///< [C] or null
  S* y = nullptr;               ///< [B, T, C]
};

template <class S>
struct ConvBackward {
  ConvSetup setup;
  const S* x = nullptr;
  const S* grad_y = nullptr;    ///< [B, T, C]
  S* grad_x = nullptr;          ///< [B, T, C]; null: not wanted
  void* grad_logits = nullptr;  ///< as setup.logits; likewise
  float* grad_bias = nullptr;   ///< [C]; likewise
  /// As many elements as conv_backward_workspace says.
  float* workspace = nullptr;
};

/// The next T' = shape.steps inputs of N = shape.batch causal streams
/// (padding_left = K-1; no lengths, no DropConnect). Input p lives in slot
/// p % (K-1) of the ring.
template <class S>
struct ConvStep {
  ConvSetup setup;
  const S* x = nullptr;               ///< [N, T', C]
  const float* bias = nullptr;        ///< [C] or null
  S* state = nullptr;                 ///< [N, K-1, C]
  const int64_t* position = nullptr;  ///< one element: inputs already seen
  S* y = nullptr;                     ///< [N, T', C]
};

/// Elements of workspace that a backward pass with these arguments wants
/// (those besides the workspace itself are set).
template <class S>
int64_t conv_backward_workspace(const ConvBackward<S>& args);

}  // namespace seqconv::internal::kernels::cuda
