#include <ATen/TensorOperators.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>

#include <algorithm>

#include "libtorch/ops/device.h"
#include "train/optimizer.h"

/// The optimiser in plain tensor algebra. A step that is not to be made is one
/// whose factors leave everything as it is.
namespace seqconv::internal {
namespace {

/// Elements at a time: as much is needed for what a step computes in between.
constexpr int64_t kElementsAtATime = 1 << 24;

/// One piece of the flat buffers.
struct Piece {
  int64_t first, count;

  at::Tensor of(const at::Tensor& buffer) const { return buffer.narrow(0, first, count); }
};

template <class Step>
void for_pieces(int64_t elements, const Step& step) {
  for (int64_t first = 0; first < elements; first += kElementsAtATime)
    step(Piece{first, std::min(kElementsAtATime, elements - first)});
}

/// `value` where `keep`, else `otherwise`: [] float32.
at::Tensor factor(const at::Tensor& keep, const at::Tensor& value, double otherwise) {
  return at::where(keep, value, otherwise).to(at::kFloat);
}
at::Tensor factor(const at::Tensor& keep, double value, double otherwise) {
  return at::where(keep, value, otherwise).to(at::kFloat);
}

/// The scaled gradient; 0 where nothing is to be done, whatever was there.
at::Tensor scaled(const at::Tensor& keep, const at::Tensor& gradient, const at::Tensor& scale) {
  return at::where(keep, gradient * scale, 0.0);
}

void adam_where(
    const OptimizerOptions& options,
    const at::Tensor& keep,
    const at::Tensor& gradients,
    const at::Tensor& scale,
    double learning_rate,
    const at::Tensor& steps,
    const at::Tensor& values,
    const at::Tensor& first_moment,
    const at::Tensor& second_moment) {
  const at::Tensor rate = factor(
      keep,
      (1 - at::pow(options.beta2, steps)).sqrt() / (1 - at::pow(options.beta1, steps)) *
          learning_rate,
      0);
  const at::Tensor weight1 = factor(keep, 1 - options.beta1, 0);
  const at::Tensor weight2 = factor(keep, 1 - options.beta2, 0);
  const at::Tensor decay = factor(keep, 1 - learning_rate * options.weight_decay, 1);
  for_pieces(values.numel(), [&](const Piece& piece) {
    const at::Tensor g = scaled(keep, piece.of(gradients), scale);
    at::Tensor p = piece.of(values);
    at::Tensor m = piece.of(first_moment);
    at::Tensor v = piece.of(second_moment);
    m.lerp_(g, weight1);
    v.lerp_(g * g, weight2);
    if (options.weight_decay > 0)
      p.mul_(decay);
    p.sub_(v.sqrt().add_(options.epsilon).reciprocal_().mul_(m).mul_(rate));
  });
}

void nag_where(
    const OptimizerOptions& options,
    const at::Tensor& keep,
    const at::Tensor& gradients,
    const at::Tensor& scale,
    double learning_rate,
    const at::Tensor& previous_rate,
    const at::Tensor& values,
    const at::Tensor& momentum) {
  const at::Tensor correction =
      at::where(previous_rate.gt(0), previous_rate.reciprocal() * learning_rate, 1.0);
  const at::Tensor carry = factor(keep, correction * options.momentum, 1);
  const at::Tensor ahead = factor(keep, correction * (options.momentum * options.momentum), 0);
  const at::Tensor decay = factor(keep, 1 - learning_rate * options.weight_decay, 1);
  for_pieces(values.numel(), [&](const Piece& piece) {
    const at::Tensor g = scaled(keep, piece.of(gradients), scale * learning_rate);
    at::Tensor p = piece.of(values);
    at::Tensor buffer = piece.of(momentum);
    if (options.weight_decay > 0)
      p.mul_(decay);
    p.add_(buffer * ahead).sub_(g, 1 + options.momentum);
    buffer.mul_(carry).sub_(g);
  });
}

}  // namespace

at::Tensor Optimizer::scalars_on(at::Device device) const {
  return ops::to_device(
      at::tensor(
          {static_cast<double>(scalars_.steps), scalars_.previous_learning_rate}, at::kDouble),
      device);
}

void Optimizer::step_where(
    const at::Tensor& keep,
    const at::Tensor& gradients,
    const at::Tensor& gradient_scale,
    double learning_rate,
    const at::Tensor& scalars) {
  at::Tensor steps = scalars.select(0, 0);
  at::Tensor previous_rate = scalars.select(0, 1);
  steps.add_(keep);
  switch (options_.kind) {
    case OptimizerKind::kAdam:
      adam_where(
          options_,
          keep,
          gradients,
          gradient_scale,
          learning_rate,
          steps,
          values_,
          tensors_.at(kFirstMoment),
          tensors_.at(kSecondMoment));
      break;
    case OptimizerKind::kNag:
      nag_where(
          options_,
          keep,
          gradients,
          gradient_scale,
          learning_rate,
          previous_rate,
          values_,
          tensors_.at(kMomentum));
      break;
  }
  previous_rate.copy_(at::where(keep, learning_rate, previous_rate));
}

}  // namespace seqconv::internal
