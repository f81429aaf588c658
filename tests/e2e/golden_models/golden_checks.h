#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include "golden_model.h"
#include "search/search.h"

/// What the tests of recorded models share. Bounds are those of the folders'
/// README files.
namespace seqconv::internal::testing {

constexpr double kOutputs = 1e-4;    ///< absolute
constexpr double kLoss = 1e-5;       ///< relative
constexpr double kNorm = 1e-4;       ///< relative
constexpr double kGradients = 1e-4;  ///< of the largest entry

/// The largest absolute difference must be at most `bound`.
void expect_near(const at::Tensor& got, const at::Tensor& want, double bound);

/// One row of a recorded [N, T, ...] tensor without its padding: [1, T, ...].
at::Tensor row_of(const at::Tensor& recorded, int64_t row, int64_t steps);

/// A hypothesis against {"tokens", "score", "positional_scores"}.
void expect_hypothesis(const Hypothesis& found, const Json& wanted);

/// Walks a recorded row through the model, side by side and layer by layer,
/// and compares what was recorded: embeddings, inputs and outputs of the
/// convolutions, outputs of the layers.
void walk_layers(const GoldenModel& golden, const torch::nn::Module& model, int64_t row);

}  // namespace seqconv::internal::testing
