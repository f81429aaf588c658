#pragma once

#include "kernels/conv.h"
#include "kernels/cuda/storage.h"

/// The short convolution on CUDA devices: static taps, taps of every position, or
/// both (see ConvForward of kernels/conv.h). Taps are normalised and dropped before.
namespace seqconv::internal::kernels::cuda {

/// A tensor beside x: of x's type, or float beside 16-bit types.
struct Beside {
  const void* data = nullptr;  ///< null: none
  Storage storage = Storage::kFloat;
};

/// Sizes, taps and the end of a convolution of x [B, T, C]; packed ones have B = 1.
/// Not more than one of lengths, offsets and numbers is given.
struct ShortConvSetup {
  ConvShape shape;                   ///< heads: H of `dynamic`, 1 without
  int64_t groups = 1;                ///< G of `weight`
  Beside weight;                     ///< [G, K]
  Beside dynamic;                    ///< [B, T, H, K]
  Beside bias;                       ///< [C]
  ConvEnd end = {};                  ///< from sums to outputs
  const int64_t* lengths = nullptr;  ///< [B]; clamped to 0 .. T
  /// [sequences + 1]: packed sequence i has rows offsets[i] to offsets[i + 1].
  const int64_t* offsets = nullptr;
  int64_t sequences = 0;
  /// [B, T]: neighbours with the same number are a sequence; negative ones are padding.
  const int64_t* numbers = nullptr;
};

/// Rows that are not real give zero. `past` (of causal convolutions) holds the
/// inputs before each sequence in order of time; beside `numbers`, before the first
/// sequence of each row of the batch.
template <class S>
struct ShortConvForward {
  ShortConvSetup setup;
  const S* x = nullptr;     ///< [B, T, C]
  const S* past = nullptr;  ///< [sequences or B, (K-1) D, C] or null
  S* y = nullptr;           ///< [B, T, C]
  /// As many bytes as short_conv_workspace says, at an address of 16.
  void* workspace = nullptr;
};

/// A gradient that is null is not wanted.
template <class S>
struct ShortConvBackward {
  ShortConvSetup setup;
  const S* x = nullptr;
  const S* past = nullptr;
  const S* grad_y = nullptr;     ///< [B, T, C]
  S* grad_x = nullptr;           ///< [B, T, C]
  float* grad_weight = nullptr;  ///< [G, K]
  void* grad_dynamic = nullptr;  ///< as `dynamic`
  float* grad_bias = nullptr;    ///< [C]
  S* grad_past = nullptr;        ///< as `past`
  void* workspace = nullptr;     ///< as in ShortConvForward
};

/// The next T' = shape.steps inputs of N = shape.batch streams (causal; lengths are
/// those of their real inputs). Input number p of a stream lies in slot p % slots of
/// its row of the ring, which has (K-1) D slots or more. Positions move on.
template <class S>
struct ShortConvStep {
  ShortConvSetup setup;
  const S* x = nullptr;  ///< [N, T', C]
  S* ring = nullptr;     ///< [M, slots, C]
  int64_t slots = 0;
  int64_t* positions = nullptr;   ///< [M, 2]: inputs seen, and the most there ever were
  const int64_t* rows = nullptr;  ///< [N], or null: row n; outside of 0 .. M-1: none
  int64_t ring_rows = 0;          ///< M
  S* y = nullptr;                 ///< [N, T', C]
};

/// Bytes of workspace that a pass with these arguments wants (those besides the
/// workspace itself are set).
template <class S>
int64_t short_conv_workspace(const ShortConvForward<S>& args);
template <class S>
int64_t short_conv_workspace(const ShortConvBackward<S>& args);

}  // namespace seqconv::internal::kernels::cuda
