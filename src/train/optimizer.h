#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>

#include "train/optimizer_scalars.h"
#include "train/options.h"

namespace seqconv::internal {

/// Adam or NAG (semantics.md 3.1) over one flat parameter buffer. Weight decay
/// is decoupled, times the learning rate, and holds for every parameter.
class Optimizer {
 public:
  /// The state tensor of Adam that holds means of squares: never below 0.
  static constexpr const char* kSecondMoment = "second_moment";
  static constexpr const char* kFirstMoment = "first_moment";
  static constexpr const char* kMomentum = "momentum";  ///< NAG's

  /// values [P] float32: updated in place by step(). A process that keeps a
  /// share of the state gives its share of the values, and of the gradients.
  Optimizer(const OptimizerOptions& options, const at::Tensor& values);

  /// One step with gradient_scale * gradients [P].
  void step(const at::Tensor& gradients, double gradient_scale, double learning_rate);

  /// The same for any device, where `keep` [] is true; else nothing changes:
  /// neither `keep` nor `gradient_scale` [] float64 is read on the host.
  /// `scalars` [2] float64 are scalars_on() of the device, brought up to date;
  /// scalars() is not.
  void step_where(
      const at::Tensor& keep,
      const at::Tensor& gradients,
      const at::Tensor& gradient_scale,
      double learning_rate,
      const at::Tensor& scalars);

  /// The scalars of the state as a new tensor: {steps, previous rate}.
  at::Tensor scalars_on(at::Device device) const;

  /// The flat state tensors by name, as a checkpoint keeps them; writing into
  /// them restores the state.
  const std::map<std::string, at::Tensor>& tensors() const { return tensors_; }

  using Scalars = OptimizerScalars;
  Scalars& scalars() { return scalars_; }
  const Scalars& scalars() const { return scalars_; }

 private:
  OptimizerOptions options_;
  at::Tensor values_;
  std::map<std::string, at::Tensor> tensors_;
  Scalars scalars_;
};

/// Euclidean norm of a flat float32 buffer; not finite exactly when an element
/// is not.
double gradient_norm(const at::Tensor& gradients);

/// min(1, max_norm / (norm + 1e-6)); 1 when max_norm is 0 (off).
double clip_factor(double norm, double max_norm);

}  // namespace seqconv::internal
