#include "libtorch/nn/embedding.h"

#include <ATen/ops/embedding.h>
#include <ATen/ops/mul.h>

#include <cmath>
#include <limits>

#include "libtorch/nn/linear.h"
#include "libtorch/ops/device.h"
#include "libtorch/ops/elementwise.h"

namespace seqconv::internal {
at::Tensor embedding_table(int64_t vocabulary, int64_t dim, const InitGenerator& generator) {
  at::Tensor table =
      normal({vocabulary, dim}, 1.0 / std::sqrt(static_cast<double>(dim)), generator);
  table[kPadId].zero_();
  return table;
}

EmbeddingImpl::EmbeddingImpl(
    const EmbeddingOptions& options, const InitGenerator& generator, const at::Tensor& shared)
    : options_(options) {
  const int64_t width = options.input_dim > 0 ? options.input_dim : options.dim;
  if (options.adaptive) {
    bands = register_module("bands", AdaptiveInput(*options.adaptive, generator));
  } else if (shared.defined()) {
    table = shared;
  } else {
    table = register_parameter("weight", embedding_table(options.vocabulary, width, generator));
  }
  if (width != options.dim)
    projection = register_parameter(
        "projection", xavier_uniform({options.dim, width}, width, options.dim, generator));
  if (options.learned > 0)
    positions = register_parameter(
        "positions", embedding_table(options.learned + kFirstPosition, options.dim, generator));
  else if (options.sinusoidal)
    sinusoidal_ = std::make_unique<const SinusoidalTable>(options.dim);
}

int64_t EmbeddingImpl::max_tokens() const {
  return positions.defined() ? options_.learned : std::numeric_limits<int32_t>::max();
}

const at::Tensor& EmbeddingImpl::first_table() const {
  return bands ? bands->table(0) : table;
}

at::Device EmbeddingImpl::device() const {
  return first_table().device();
}

at::Tensor EmbeddingImpl::learned_rows(int64_t past, int64_t count) const {
  TORCH_CHECK(
      past + count <= options_.learned,
      "[embedding] learned positions reach max_positions = ",
      options_.learned,
      " tokens, but got a sequence of ",
      past + count);
  return positions.narrow(0, past + kFirstPosition, count);
}

at::Tensor EmbeddingImpl::forward(const at::Tensor& tokens, DropoutPlan& plan, int64_t past) const {
  const double scale = std::sqrt(static_cast<double>(options_.dim));
  at::Tensor rows =  // [B, T, C], or E of them
      bands ? bands->forward(tokens, plan.activation_type())
            : at::embedding(table, ops::to_device(tokens, device()));
  if (projection.defined())
    rows = project(in_type(rows, plan.activation_type()), projection);
  const int64_t count = tokens.size(1);
  const at::Tensor x = positions.defined() ? at::add(learned_rows(past, count), rows, scale)
      : sinusoidal_ ? at::add(sinusoidal_->rows(past, count, device()), rows, scale)
                    : at::mul(rows, scale);
  // All that follows takes its type from here.
  return ops::dropout(
      x.to(plan.activation_type().value_or(first_table().scalar_type())),
      plan.rate(options_.dropout),
      plan.next_seed());
}

}  // namespace seqconv::internal
