#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <vector>

#include "kernels/cross_entropy.h"
#include "libtorch/ops/fused_common.h"
#include "libtorch/ops/kernel_arguments.h"
#include "libtorch/ops/parallel.h"

namespace seqconv::ops {
using namespace internal;

/// Losses of rows of logits, added up; the logits may become their gradient.
class RowLosses {
 public:
  RowLosses(
      const kernels::SmoothedLoss& smoothed, const at::Tensor& gradient_scale, at::Device device)
      : smoothed_(smoothed),
        gradient_scale_(gradient_scale),
        loss_(at::zeros({}, at::dtype(at::kDouble).device(device))),
        nll_(at::zeros_like(loss_)) {}

  /// logits [rows, V], target [rows].
  void add(at::Tensor logits, const at::Tensor& target, bool with_gradient) {
    at::Tensor wide = logits;  // in which sums are computed
    if (logits.scalar_type() == at::kBFloat16 && logits.is_cpu())
      wide = logits.to(at::kFloat);
    if (has_kernel(wide))
      add_by_kernel(wide, target, with_gradient);
    else
      wide = add_by_reference(wide, target, with_gradient);
    if (!with_gradient)
      return;
    if (gradient_scale_.defined())  // before 16 bits round small ones to 0
      wide.mul_(gradient_scale_);
    if (!wide.is_same(logits))
      logits.copy_(wide);
  }

  at::Tensor loss() const { return loss_; }  // [] float64
  at::Tensor nll() const { return nll_; }    // [] float64

 private:
  void add_by_kernel(const at::Tensor& logits, const at::Tensor& target, bool with_gradient) {
    loss_of_row_.resize(static_cast<size_t>(logits.size(0)));
    nll_of_row_.resize(loss_of_row_.size());
    dispatch_storage(logits.scalar_type(), [&]<class S>(S) {
      using T = kernels::AccumulatorOf<S>;
      kernels::CrossEntropyRows<T> pass;
      pass.rows = logits.size(0);
      pass.vocabulary = logits.size(1);
      pass.logits = pointer<T>(logits);
      pass.target = target.template const_data_ptr<int64_t>();
      pass.loss = loss_of_row_.data();
      pass.nll = nll_of_row_.data();
      pass.with_gradient = with_gradient;
      kernels::cross_entropy(pass, smoothed_, parallel_for());
    });
    double& loss = *loss_.mutable_data_ptr<double>();
    double& nll = *nll_.mutable_data_ptr<double>();
    for (size_t row = 0; row < loss_of_row_.size(); ++row) {
      loss += loss_of_row_[row];
      nll += nll_of_row_[row];
    }
  }

  /// Returns the gradient, if it is wanted, in the type of sums.
  at::Tensor add_by_reference(
      const at::Tensor& logits, const at::Tensor& target, bool with_gradient) {
    const at::Tensor column = target.unsqueeze(1);  // [rows, 1]
    const at::Tensor log_p =                        // [rows, V]
        at::log_softmax(logits, -1, accumulator_type(logits.scalar_type()));
    const at::Tensor nll = -log_p.gather(1, column).sum(at::kDouble);
    nll_.add_(nll);
    loss_.add_(nll, smoothed_.nll_weight);
    if (smoothed_.uniform != 0)
      loss_.sub_(log_p.sum(at::kDouble), smoothed_.uniform);
    if (!with_gradient)
      return {};
    at::Tensor grad = log_p.exp().sub_(smoothed_.uniform);
    grad.scatter_add_(1, column, at::full_like(column, -smoothed_.nll_weight, grad.options()));
    return grad;
  }

  kernels::SmoothedLoss smoothed_;
  at::Tensor gradient_scale_;
  at::Tensor loss_, nll_;
  std::vector<double> loss_of_row_, nll_of_row_;
};

}  // namespace seqconv::ops
