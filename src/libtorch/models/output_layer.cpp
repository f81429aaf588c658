#include "libtorch/models/output_layer.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/log_softmax.h>

#include <cmath>

#include "base/error.h"
#include "libtorch/nn/linear.h"
#include "libtorch/ops/device.h"

namespace seqconv::internal {
namespace {

AdaptiveSoftmaxOptions adaptive_options(const ModelOptions& options, int64_t vocabulary) {
  const AdaptiveOptions& adaptive = options.adaptive;
  return {
      .vocabulary = vocabulary,
      .channels = options.output_width(),
      .cutoffs = adaptive.softmax_cutoffs,
      .factor = adaptive.softmax_factor,
      .dropout = adaptive.softmax_dropout,
      .tie_projections = adaptive.tie_projections,
      .fairseq_compatible = adaptive.fairseq_compatible};
}

at::Tensor as_rows(const at::Tensor& hidden) {
  return hidden.reshape({-1, hidden.size(-1)});
}

}  // namespace

OutputLayerImpl::OutputLayerImpl(
    const ModelOptions& options,
    int64_t vocabulary,
    const InitGenerator& generator,
    const Embedding& tied) {
  const int64_t width = options.output_width();
  if (width != options.dim)
    projection_ = register_parameter(
        "projection", xavier_uniform({width, options.dim}, options.dim, width, generator));
  if (!options.adaptive.softmax_cutoffs.empty())
    adaptive_ = register_module(
        "adaptive",
        AdaptiveSoftmax(
            adaptive_options(options, vocabulary),
            generator,
            tied ? tied->bands : AdaptiveInput(nullptr)));
  else if (tied)
    weight_ = tied->table;
  else
    weight_ = register_parameter(
        "weight",
        normal({vocabulary, width}, 1.0 / std::sqrt(static_cast<double>(width)), generator));
}

/// hidden [N, C] -> [N, D].
at::Tensor OutputLayerImpl::projected(const at::Tensor& hidden) const {
  return projection_.defined() ? project(hidden, projection_) : hidden;
}

ops::CrossEntropySums OutputLayerImpl::loss(
    const at::Tensor& hidden,
    const at::Tensor& target,
    const ops::CrossEntropyOptions& options,
    DropoutPlan& plan) const {
  const at::Tensor rows = projected(as_rows(hidden));  // [M, D]
  const at::Tensor words = target.reshape(-1);
  if (!adaptive_)
    return ops::linear_cross_entropy(rows, weight_, words, options);
  SEQCONV_CHECK(
      options.smoothing == 0,
      "an adaptive softmax has no label smoothing, but got ",
      options.smoothing);
  return adaptive_->loss(rows, words, plan, options.gradient_scale);
}

at::Tensor OutputLayerImpl::target_log_probabilities(
    const at::Tensor& hidden, const at::Tensor& target) const {
  const at::Tensor rows = as_rows(hidden);  // [M, C]
  const at::Tensor words = target.reshape(-1);
  if (adaptive_)
    return adaptive_->target_log_probabilities(projected(rows), words).view(target.sizes());
  const int64_t chunk_rows = ops::rows_in_chunk(weight_.size(0));
  std::vector<at::Tensor> parts;
  const auto chunks = rows.split(chunk_rows);
  const auto targets = words.split(chunk_rows);
  for (size_t i = 0; i < chunks.size(); ++i) {
    parts.push_back(log_probabilities(chunks[i])
                        .gather(1, ops::to_device(targets[i], rows.device()).unsqueeze(1))
                        .squeeze(1));
  }
  return at::cat(parts).view(target.sizes());
}

at::Tensor OutputLayerImpl::log_probabilities(const at::Tensor& hidden) const {
  const at::Tensor rows = projected(hidden);
  if (adaptive_)
    return adaptive_->log_probabilities(rows);
  return at::log_softmax(project(rows, weight_), -1, at::kFloat);
}

}  // namespace seqconv::internal
