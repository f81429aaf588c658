#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <optional>

#include "seqconv/nn/adaptive_input.h"
#include "seqconv/nn/dropout_plan.h"

namespace seqconv {

struct EmbeddingOptions {
  int64_t vocabulary = 0;     ///< V
  int64_t dim = 0;            ///< C
  bool learned = false;       ///< positions: learned instead of sinusoidal
  int64_t max_positions = 0;  ///< of learned positions
  double dropout = 0;
  /// Bands instead of one table; its vocabulary and channels are V and C.
  std::optional<AdaptiveInputOptions> adaptive;
};

/// Token and position embedding of one side:
///   dropout(sqrt(C) * table[id] + position).
/// The table [V, C] is N(0, 1/C) with a zero <pad> row and may be shared; an
/// adaptive input may stand in its place.
class EmbeddingImpl : public torch::nn::Module {
 public:
  /// `shared` is another side's table; undefined: this one owns its own.
  EmbeddingImpl(
      const EmbeddingOptions& options,
      const InitGenerator& generator = {},
      const at::Tensor& shared = {});

  /// tokens [B, T] int64, real tokens first; their positions start at `past`
  /// tokens. -> [B, T, C]. Error when learned positions do not reach.
  at::Tensor
  forward(const at::Tensor& tokens, DropoutPlan& plan, int64_t past = 0) const;

  /// Most tokens of a sequence: of learned positions, or a very large number.
  int64_t max_tokens() const;

  at::Tensor table;              ///< [V, C]; undefined with bands
  at::Tensor positions;          ///< learned [max_positions + 2, C], or none
  AdaptiveInput bands{nullptr};  ///< empty without bands

 private:
  at::Tensor position_rows(int64_t past, int64_t count) const;
  at::Tensor sinusoidal_rows(int64_t past, int64_t count) const;

  EmbeddingOptions options_;
  mutable at::Tensor first_rows_;  // positions from the first, as needed
  // Rows of a long generation: some positions from distant_from_ on, so that
  // memory does not grow with the length.
  mutable at::Tensor distant_rows_;
  mutable int64_t distant_from_ = 0;
};
TORCH_MODULE(Embedding);

/// The [V, C] table N(0, 1/C) with a zero <pad> row (semantics.md 8.13, 8.19).
at::Tensor embedding_table(
    int64_t vocabulary,
    int64_t dim,
    const InitGenerator& generator);

}  // namespace seqconv
