#pragma once

#include <cstdint>

#include "kernels/bfloat16.h"
#include "kernels/isa.h"
#include "kernels/parallel_for.h"
#include "seqconv/ops/activation.h"
#include "seqconv/ops/normalization.h"

/// Convolutions of few or many channels a head, with taps that all positions
/// share, taps of every position, or both. Tensors are dense and row-major with
/// channels innermost; nothing is checked here (the operators do that).
namespace seqconv::internal::kernels {

/// Sizes of a convolution over x [B, T, C] with weights of K taps for H heads.
/// Tap j of output t meets input t + (j - padding_left) D.
struct ConvShape {
  int64_t batch = 0;         ///< B >= 0, sequences
  int64_t steps = 0;         ///< T >= 0, of each; unused where `offsets` say it
  int64_t channels = 0;      ///< C, a multiple of H
  int64_t heads = 1;         ///< H >= 1
  int64_t kernel_size = 1;   ///< K >= 1
  int64_t padding_left = 0;  ///< 0 .. K-1
  int64_t dilation = 1;      ///< D >= 1

  int64_t head_channels() const { return channels / heads; }
};

using ops::Normalization;
/// The e of Normalization.
inline constexpr double kNormEpsilon = 1e-6;

/// DropConnect on taps. Element i of the taps, counted in row-major order, is
/// kept when random_word(seed, i) >= drop_threshold(p), or when mask[i] is not
/// 0; survivors are scaled by 1/(1-p). With neither, nothing is dropped.
struct TapDrop {
  double p = 0;
  bool seeded = false;
  uint64_t seed = 0;
  const uint8_t* mask = nullptr;

  bool active() const { return seeded || mask != nullptr; }
};

/// Says how a kernel runs: the threads of its caller, the instruction set, and
/// how many bytes a pass reads before it prefetches and stores past the caches.
struct Execution {
  ParallelFor parallel_for;
  Isa isa = best_isa();
  int64_t streams_from = 4 << 20;
};

/// Ring of the last `slots` inputs of N rows, [N, slots, C]: input number p
/// lives in slot p % slots.
template <class S>
struct RingState {
  S* data = nullptr;
  int64_t slots = 0;
  int64_t position = 0;  ///< inputs already seen
};

using ops::ConvActivation;
/// Says how sums z become outputs: y = activation(z + bias) + x.
struct ConvEnd {
  ConvActivation activation = ConvActivation::kNone;
  bool residual = false;  ///< adds x
};

/// Taps [G, K] of all positions, those of a group for C/G neighbouring channels.
template <class A>
struct StaticTaps {
  A* data = nullptr;  ///< null: none
  int64_t groups = 1;
};

/// Arguments of both convolutions. S (float, double or BFloat16) stores x and
/// y, L the logits: [H, K] for lightconv, with an element's number h*K + j
/// for `drop`; [B, T, H, K] for dynamicconv, ((b*T + t)*H + h)*K + j. Without
/// `softmax` logits are the taps. With renormalize_edges (softmax only) taps
/// outside the sequence get -infinity before the softmax, so that the others
/// sum to 1.
///
/// The B sequences have T rows each, of which the first lengths[b] are real. Or
/// they are packed: sequence b has rows offsets[b] to offsets[b+1] of [N, C], and
/// tensors of [B, T, ...] are [N, ...]. Rows that are not real give zero.
///
/// `past` (of causal convolutions) holds the inputs before each sequence in order
/// of time; without it these are zero.
template <class S, class L>
struct ConvForward {
  ConvShape shape;
  bool softmax = true;
  bool renormalize_edges = false;
  TapDrop drop;
  const S* x = nullptr;  ///< [B, T, C]
  const L* logits = nullptr;
  const AccumulatorOf<S>* bias = nullptr;         ///< [C] or null
  const int64_t* lengths = nullptr;               ///< [B] or null
  const int64_t* offsets = nullptr;               ///< [B+1] or null
  StaticTaps<const AccumulatorOf<S>> added = {};  ///< to those of the logits
  const S* past = nullptr;                        ///< [B, (K-1) D, C] or null
  ConvEnd end = {};
  S* y = nullptr;  ///< [B, T, C]
};

/// A gradient that is null is not wanted; one of them is.
template <class S, class L>
struct ConvBackward {
  ConvShape shape;
  bool softmax = true;
  bool renormalize_edges = false;
  TapDrop drop;
  const S* x = nullptr;
  const L* logits = nullptr;
  const AccumulatorOf<S>* bias = nullptr;  ///< read with an activation
  const int64_t* lengths = nullptr;
  const int64_t* offsets = nullptr;
  StaticTaps<const AccumulatorOf<S>> added = {};
  const S* past = nullptr;
  ConvEnd end = {};
  const S* grad_y = nullptr;               ///< [B, T, C]
  S* grad_x = nullptr;                     ///< [B, T, C] or null
  L* grad_logits = nullptr;                ///< as logits, or null
  AccumulatorOf<S>* grad_bias = nullptr;   ///< [C] or null
  AccumulatorOf<S>* grad_added = nullptr;  ///< [G, K] or null
  S* grad_past = nullptr;                  ///< [B, (K-1) D, C] or null
};

/// The next T' = shape.steps inputs of N = shape.batch causal streams
/// (padding_left = K-1). The ring has (K-1) D slots or more. The rows of the
/// streams in it, their positions and how many of their inputs are real may be
/// given: inputs that are not are not seen, and give zero.
template <class S, class L>
struct ConvStep {
  ConvShape shape;
  bool softmax = true;
  bool renormalize_edges = false;
  const S* x = nullptr;                    ///< [N, T', C]
  const L* logits = nullptr;               ///< [H, K] or [N, T', H, K]
  const AccumulatorOf<S>* bias = nullptr;  ///< [C] or null
  RingState<S> state;
  const int64_t* rows = nullptr;       ///< [N], of the ring, or null: row n; < 0: none
  const int64_t* positions = nullptr;  ///< of the ring's rows, or null: state.position
  int64_t position_stride = 1;         ///< from one to the next
  const int64_t* lengths = nullptr;    ///< [N] or null
  StaticTaps<const AccumulatorOf<S>> added = {};
  ConvEnd end = {};
  S* y = nullptr;  ///< [N, T', C]
};

/// grad_bias[c] = sum of grad_y[b, t, c] over all real rows, in a fixed order.
template <class S>
void bias_gradient(
    const ConvShape& shape,
    const int64_t* lengths,
    const int64_t* offsets,
    const S* grad_y,
    AccumulatorOf<S>* grad_bias,
    const Execution& run);

/// Lightweight convolution: one kernel a head, given in the type that sums are
/// kept in.
template <class S>
void lightconv_forward(const ConvForward<S, AccumulatorOf<S>>& args, const Execution& run);

/// Both gradients in one pass. The sum over batch and time is cut into chunks
/// that depend on the sizes alone, and added up in a fixed order: the same
/// bits for any number of threads.
template <class S>
void lightconv_backward(const ConvBackward<S, AccumulatorOf<S>>& args, const Execution& run);

template <class S>
void lightconv_step(const ConvStep<S, AccumulatorOf<S>>&, const Execution&);

/// Dynamic convolution: K logits for every position and head, of x's type or
/// float beside BFloat16. Softmax, DropConnect and convolution are one pass;
/// the taps never exist as a whole.
template <class S, class L>
void dynamicconv_forward(const ConvForward<S, L>& args, const Execution& run);

/// Taps are computed again from the logits. Every position of both gradients
/// has one owner that sums it in a fixed order.
template <class S, class L>
void dynamicconv_backward(const ConvBackward<S, L>& args, const Execution& run);

template <class S, class L>
void dynamicconv_step(const ConvStep<S, L>& args, const Execution& run);

}  // namespace seqconv::internal::kernels
