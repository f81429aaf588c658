#include "seqconv/models/output_layer.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/log_softmax.h>

#include "seqconv/nn/embedding.h"

namespace seqconv {
namespace {
constexpr int64_t kChunkRows = 256;
}

OutputLayerImpl::OutputLayerImpl(
    int64_t vocabulary,
    int64_t dim,
    const InitGenerator& generator,
    const at::Tensor& shared) {
  weight_ = shared.defined()
      ? shared
      : register_parameter(
            "weight",
            normal(
                {vocabulary, dim},
                1.0 / std::sqrt(static_cast<double>(dim)),
                generator));
}

ops::CrossEntropySums OutputLayerImpl::loss(
    const at::Tensor& hidden,
    const at::Tensor& target,
    const ops::CrossEntropyOptions& options) const {
  return ops::linear_cross_entropy(hidden, weight_, target, options);
}

at::Tensor OutputLayerImpl::target_log_probabilities(
    const at::Tensor& hidden,
    const at::Tensor& target) const {
  std::vector<at::Tensor> parts;
  const auto chunks = hidden.split(kChunkRows);
  const auto targets = target.split(kChunkRows);
  for (size_t i = 0; i < chunks.size(); ++i) {
    parts.push_back(log_probabilities(chunks[i])
                        .gather(1, targets[i].unsqueeze(1))
                        .squeeze(1));
  }
  return at::cat(parts);
}

at::Tensor OutputLayerImpl::log_probabilities(const at::Tensor& hidden) const {
  return at::log_softmax(at::linear(hidden, weight_), -1, at::kFloat);
}

}  // namespace seqconv
