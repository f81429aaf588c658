#pragma once

#include "kernels/cuda/storage.h"
#include "kernels/talk.h"

/// TaLK convolution on CUDA devices; see the CPU's talk.h for the rules.
namespace seqconv::internal::kernels::cuda {

/// Offsets [B, T, H] of x's type, or float beside 16-bit types.
struct TalkOffsets {
  const void* left = nullptr;
  const void* right = nullptr;  ///< null: windows end at t
  Storage storage = Storage::kFloat;
};

template <class S>
struct TalkForward {
  TalkShape shape;
  TalkOffsets offsets;
  const int64_t* lengths = nullptr;  ///< [B] or null; clamped to 0 .. T
  const S* x = nullptr;              ///< [B, T, C]
  S* y = nullptr;                    ///< [B, T, C]
};

template <class S>
struct TalkBackward {
  TalkShape shape;
  TalkOffsets offsets;
  const int64_t* lengths = nullptr;
  const S* x = nullptr;
  const S* grad_y = nullptr;     ///< [B, T, C]
  S* grad_x = nullptr;           ///< [B, T, C]; null: not wanted
  void* grad_left = nullptr;     ///< as offsets.left; likewise
  void* grad_right = nullptr;    ///< likewise, or null as offsets.right
  int32_t* workspace = nullptr;  ///< talk_backward_workspace elements
};

/// As cuda::ConvStep: the ring has `slots` inputs, and a window that reaches
/// further is cut there.
template <class S>
struct TalkStep {
  TalkShape shape;
  TalkOffsets offsets;
  const S* x = nullptr;  ///< [N, T', C]
  S* state = nullptr;    ///< [N, slots, C]
  int64_t slots = 0;
  const int64_t* position = nullptr;  ///< one element
  S* y = nullptr;                     ///< [N, T', C]
};

int64_t talk_backward_workspace(const TalkShape& shape);

}  // namespace seqconv::internal::kernels::cuda
