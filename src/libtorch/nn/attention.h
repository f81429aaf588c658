#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <span>

#include "libtorch/nn/dropout_plan.h"
#include "libtorch/nn/linear.h"
#include "libtorch/nn/short_conv.h"
#include "libtorch/nn/state.h"

namespace seqconv::internal {

/// Softmax attention with scale R^-0.5 and dropout on the probabilities.
/// query [N, H, T, R], key and value [N, H, S, R]; mask broadcastable to
/// [N, H, T, S], true = may be seen, or empty. Every query must see something.
/// -> [N, H, T, R].
at::Tensor attend(
    const at::Tensor& query,
    const at::Tensor& key,
    const at::Tensor& value,
    const std::optional<at::Tensor>& mask,
    double dropout,
    DropoutPlan& plan);

/// [T, T] booleans: query t sees keys t - padding_left ... t - padding_left +
/// K - 1, the taps of a convolution of that width (semantics.md 8.7).
at::Tensor window_mask(
    int64_t steps, int64_t kernel_size, int64_t padding_left, at::Device device = at::kCPU);

/// [B, S] booleans: position < length.
at::Tensor length_mask(const at::Tensor& lengths, int64_t steps);

/// Self-attention over the given window, heads split and joined: q, k, v
/// [B, T, C] -> [B, T, C]. kernel_size 0: unlimited (to the left only when
/// causal). Rows at and beyond `lengths` are zero where lengths are given.
struct LocalAttentionOptions {
  int64_t heads = 1;
  int64_t kernel_size = 0;
  bool causal = false;
  std::optional<at::Tensor> lengths;
  double dropout = 0;
};
at::Tensor local_attention(
    const at::Tensor& q,
    const at::Tensor& k,
    const at::Tensor& v,
    const LocalAttentionOptions& options,
    DropoutPlan& plan);

/// The past of self-attention: keys and values of every position that can still
/// be seen, places `begin` to `end` of buffers with room for more, so that a
/// step need not copy them.
struct AttentionState {
  at::Tensor keys;    ///< [N, H, room, R]
  at::Tensor values;  ///< [N, H, room, R]
  int64_t begin = 0;
  int64_t end = 0;
  ShortConvPast in_conv;   ///< of queries, keys and values, where there is one
  ShortConvPast out_conv;  ///< of the outputs

  int64_t kept() const { return end - begin; }
  /// The keys or values in use, [N, H, kept, R]: a view of `buffer`.
  at::Tensor in_use(const at::Tensor& buffer) const;
  /// Puts keys and values [N, H, T', R] behind those that are kept; where the
  /// room is too small it doubles.
  void append(const at::Tensor& new_keys, const at::Tensor& new_values);
  void reorder(const at::Tensor& parents);
};

struct SelfAttentionOptions {
  int64_t channels = 0;     ///< C
  int64_t heads = 1;        ///< H, divides C
  int64_t kernel_size = 0;  ///< window; 0: full
  bool causal = false;
  double dropout = 0;  ///< on the probabilities
  /// Behind in_proj, of 3C channels, and behind out_proj; taps are predicted from
  /// what these maps read.
  std::optional<ShortConvOptions> in_conv{};
  std::optional<ShortConvOptions> out_conv{};
};

/// Multi-head self-attention with its four projections (biases; semantics.md
/// 8.18). in_proj stacks query, key and value: [3C, C].
class SelfAttentionImpl : public torch::nn::Module {
 public:
  explicit SelfAttentionImpl(
      const SelfAttentionOptions& options, const InitGenerator& generator = {});

  /// x [B, T, C], lengths [B] or empty -> [B, T, C].
  at::Tensor forward(
      const at::Tensor& x, const std::optional<at::Tensor>& lengths, DropoutPlan& plan) const;

  /// Causal only: the next inputs x [N, T', C] -> [N, T', C]. Keys and values
  /// that no later query can see are dropped from the state.
  at::Tensor step(const at::Tensor& x, AttentionState& state, const StepPosition& position) const;
  AttentionState initial_state(int64_t rows) const;

 private:
  SelfAttentionOptions options_;
  Linear in_proj_{nullptr};
  Linear out_proj_{nullptr};
  ShortConv in_conv_{nullptr};
  ShortConv out_conv_{nullptr};
};
TORCH_MODULE(SelfAttention);

/// Says where N rows stand when those that look at the same sentence are its
/// queries: W places a sentence, M * W in all.
struct RowPlaces {
  int64_t width = 1;  ///< W: the most rows of a sentence
  /// Empty where row i stands at place i. Else the row at each place, [M * W]
  /// int64 (any row where none stands), and the place of each row, [N] int64.
  at::Tensor row_at;
  at::Tensor place_of;
};

/// Rows, by the sentence of 0 to `sentences` - 1 that each looks at, in any
/// order.
RowPlaces place_rows(std::span<const int32_t> sentence_of_row, int64_t sentences);

/// Keys and values of the source, [M, H, S, R] each, made once a sentence, and
/// which source positions are real, [M, 1, 1, S] (empty: all).
struct CrossMemory {
  at::Tensor keys;
  at::Tensor values;
  std::optional<at::Tensor> mask;
  RowPlaces rows;  ///< row i looks at sentence i unless said otherwise

  /// Keeps these sentences, [M'] int64, in this order.
  void keep(const at::Tensor& sentences);
};

/// Asks for what a head of a layer looks at in the source, which a forward pass fills in.
struct HeadLook {
  int64_t head = 0;
  at::Tensor log_shares;  ///< [B, T, S] natural logarithms, differentiable, without dropout
};

struct CrossAttentionOptions {
  int64_t channels = 0;  ///< C
  int64_t heads = 1;     ///< H, divides C
  double dropout = 0;
};

/// The decoder's look at the source. key_value_proj stacks key and value:
/// [2C, C].
class CrossAttentionImpl : public torch::nn::Module {
 public:
  explicit CrossAttentionImpl(
      const CrossAttentionOptions& options, const InitGenerator& generator = {});

  /// states [B, S, C]; lengths [B] or empty (nothing is padded).
  CrossMemory memory(const at::Tensor& states, const std::optional<at::Tensor>& lengths) const;
  /// x [N, T, C], each row for the sentence that `memory` says -> [N, T, C]. A look is of row
  /// i at sentence i.
  at::Tensor forward(
      const at::Tensor& x,
      const CrossMemory& memory,
      DropoutPlan& plan,
      HeadLook* look = nullptr) const;
  /// The probabilities that forward() weighs source positions by, without dropout, row i
  /// for sentence i: x [B, T, C] -> [B, H, T, S].
  at::Tensor probabilities(const at::Tensor& x, const CrossMemory& memory) const;

 private:
  CrossAttentionOptions options_;
  Linear query_proj_{nullptr};
  Linear key_value_proj_{nullptr};
  Linear out_proj_{nullptr};
};
TORCH_MODULE(CrossAttention);

}  // namespace seqconv::internal
