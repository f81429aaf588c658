#include "seqconv/nn/embedding.h"

#include <ATen/ops/embedding.h>
#include <ATen/ops/linear.h>

#include <cmath>
#include <limits>

#include "seqconv/ops/elementwise.h"

namespace seqconv {
at::Tensor embedding_table(
    int64_t vocabulary,
    int64_t dim,
    const InitGenerator& generator) {
  at::Tensor table = normal(
      {vocabulary, dim},
      1.0 / std::sqrt(static_cast<double>(dim)),
      generator);
  table[kPadId].zero_();
  return table;
}

EmbeddingImpl::EmbeddingImpl(
    const EmbeddingOptions& options,
    const InitGenerator& generator,
    const at::Tensor& shared)
    : options_(options) {
  const int64_t width = options.input_dim > 0 ? options.input_dim : options.dim;
  if (options.adaptive) {
    bands =
        register_module("bands", AdaptiveInput(*options.adaptive, generator));
  } else if (shared.defined()) {
    table = shared;
  } else {
    table = register_parameter(
        "weight",
        embedding_table(options.vocabulary, width, generator));
  }
  if (width != options.dim)
    projection = register_parameter(
        "projection",
        xavier_uniform({options.dim, width}, width, options.dim, generator));
  if (options.learned) {
    positions = register_parameter(
        "positions",
        embedding_table(
            options.max_positions + kFirstPosition,
            options.dim,
            generator));
  } else {
    sinusoidal_ = std::make_unique<const SinusoidalTable>(options.dim);
  }
}

int64_t EmbeddingImpl::max_tokens() const {
  return options_.learned ? options_.max_positions
                          : std::numeric_limits<int32_t>::max();
}

at::Tensor EmbeddingImpl::position_rows(int64_t past, int64_t count) const {
  if (options_.learned) {
    TORCH_CHECK(
        past + count <= options_.max_positions,
        "[embedding] learned positions reach max_positions = ",
        options_.max_positions,
        " tokens, but got a sequence of ",
        past + count);
    return positions.narrow(0, past + kFirstPosition, count);
  }
  return sinusoidal_->rows(past, count);
}

at::Tensor EmbeddingImpl::forward(
    const at::Tensor& tokens,
    DropoutPlan& plan,
    int64_t past) const {
  const double scale = std::sqrt(static_cast<double>(options_.dim));
  at::Tensor rows =  // [B, T, C], or E of them
      bands ? bands->forward(tokens) : at::embedding(table, tokens);
  if (projection.defined())
    rows = at::linear(rows, projection);
  const at::Tensor x =
      at::add(position_rows(past, tokens.size(1)), rows, scale);
  return ops::dropout(x, plan.rate(options_.dropout), plan.next_seed());
}

}  // namespace seqconv
