#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <memory>
#include <optional>

#include "libtorch/nn/adaptive_input.h"
#include "libtorch/nn/dropout_plan.h"
#include "libtorch/nn/positions.h"

namespace seqconv::internal {

struct EmbeddingOptions {
  int64_t vocabulary = 0;  ///< V
  int64_t dim = 0;         ///< C
  int64_t input_dim = 0;   ///< E, channels of the table; 0 = C
  bool sinusoidal = true;  ///< positions that need no parameter
  int64_t learned = 0;     ///< how many positions are learned instead; 0: none
  double dropout = 0;
  /// Bands instead of one table; its vocabulary and channels are V and C, and E
  /// is C.
  std::optional<AdaptiveInputOptions> adaptive;
};

/// Token and position embedding of one side:
///   dropout(sqrt(C) * table[id] + position), or without a position.
/// The table [V, E] is N(0, 1/E) with a zero <pad> row and may be shared; an
/// adaptive input may stand in its place. A linear map without bias,
/// Xavier-uniform, leads from its rows to C channels where E is not C.
class EmbeddingImpl : public torch::nn::Module {
 public:
  /// `shared` is another side's table; undefined: this one owns its own.
  EmbeddingImpl(
      const EmbeddingOptions& options,
      const InitGenerator& generator = {},
      const at::Tensor& shared = {});

  /// tokens [B, T] int64, best on the host, real tokens first; their positions
  /// start at `past` tokens. -> [B, T, C] in the plan's activation type, else
  /// the table's. Error when learned positions do not reach. Safe to call from
  /// several threads at a time.
  at::Tensor forward(const at::Tensor& tokens, DropoutPlan& plan, int64_t past = 0) const;

  /// Most tokens of a sequence: of learned positions, or a very large number.
  int64_t max_tokens() const;
  /// The device of its parameters, and so of the model's.
  at::Device device() const;

  at::Tensor table;              ///< [V, E]; undefined with bands
  at::Tensor projection;         ///< [C, E], or undefined
  at::Tensor positions;          ///< learned [learned + 2, C], or undefined
  AdaptiveInput bands{nullptr};  ///< empty without bands

 private:
  const at::Tensor& first_table() const;
  at::Tensor learned_rows(int64_t past, int64_t count) const;

  EmbeddingOptions options_;
  std::unique_ptr<const SinusoidalTable> sinusoidal_;  // or null
};
TORCH_MODULE(Embedding);

/// The [V, C] table N(0, 1/C) with a zero <pad> row (semantics.md 8.13, 8.19).
at::Tensor embedding_table(int64_t vocabulary, int64_t dim, const InitGenerator& generator);

}  // namespace seqconv::internal
