#include "train/optimizer.h"

#include <ATen/ops/zeros_like.h>

#include <cmath>

#include "base/error.h"
#include "kernels/optimizer.h"
#include "libtorch/ops/parallel.h"

namespace seqconv::internal {

Optimizer::Optimizer(const OptimizerOptions& options, const at::Tensor& values)
    : options_(options), values_(values) {
  switch (options.kind) {
    case OptimizerKind::kAdam:
      tensors_[kFirstMoment] = at::zeros_like(values);
      tensors_[kSecondMoment] = at::zeros_like(values);
      break;
    case OptimizerKind::kNag:
      tensors_[kMomentum] = at::zeros_like(values);
      break;
  }
}

void Optimizer::step(const at::Tensor& gradients, double gradient_scale, double learning_rate) {
  float* values = values_.mutable_data_ptr<float>();
  const float* gradient = gradients.const_data_ptr<float>();
  ++scalars_.steps;
  switch (options_.kind) {
    case OptimizerKind::kAdam:
      kernels::adam_step<float>(
          values,
          gradient,
          tensors_[kFirstMoment].mutable_data_ptr<float>(),
          tensors_[kSecondMoment].mutable_data_ptr<float>(),
          values_.numel(),
          {.lr = learning_rate,
           .beta1 = options_.beta1,
           .beta2 = options_.beta2,
           .epsilon = options_.epsilon,
           .weight_decay = options_.weight_decay,
           .step = scalars_.steps,
           .grad_scale = gradient_scale},
          ops::parallel_for());
      break;
    case OptimizerKind::kNag:
      kernels::nag_step<float>(
          values,
          gradient,
          tensors_[kMomentum].mutable_data_ptr<float>(),
          values_.numel(),
          {.lr = learning_rate,
           .previous_lr = scalars_.previous_learning_rate,
           .momentum = options_.momentum,
           .weight_decay = options_.weight_decay,
           .grad_scale = gradient_scale},
          ops::parallel_for());
      break;
  }
  scalars_.previous_learning_rate = learning_rate;
}

double gradient_norm(const at::Tensor& gradients) {
  return std::sqrt(kernels::squared_norm<float>(
      gradients.const_data_ptr<float>(), gradients.numel(), ops::parallel_for()));
}

double clip_factor(double norm, double max_norm) {
  return kernels::clip_factor(norm, max_norm);
}

}  // namespace seqconv::internal
