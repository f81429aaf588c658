#include "seqconv/ops/linear_cross_entropy.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <vector>

#include "ops/fused_common.h"
#include "seqconv/kernels/cross_entropy.h"
#include "seqconv/ops/parallel.h"

namespace seqconv::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Logits of a chunk: few enough to stay in a shared cache between their three
/// passes, rows enough for the products (of 864 x 256 x 6000, one thread: 128
/// rows took 17 % longer than all at once, 288 took 7 %, 432 took 2 %).
constexpr int64_t kChunkBytes = 16 << 20;
constexpr int64_t kMinChunkRows = 64;

kernels::SmoothedLoss smoothed_loss(
    const CrossEntropyOptions& options,
    int64_t vocabulary) {
  const double e = options.smoothing;
  switch (options.form) {
    case SmoothingForm::kAll:
      return {1 - e, e / static_cast<double>(vocabulary)};
    case SmoothingForm::kOthers: {
      const double each = e > 0 ? e / static_cast<double>(vocabulary - 1) : 0.0;
      return {1 - e - each, each};
    }
  }
  TORCH_CHECK(false, "[linear_cross_entropy] unknown smoothing form");
}

void check_options(
    std::string_view op,
    const CrossEntropyOptions& options,
    int64_t vocabulary) {
  TORCH_CHECK(
      options.smoothing >= 0 && options.smoothing < 1,
      "[",
      op,
      "] smoothing must be in [0, 1), but got ",
      options.smoothing);
  TORCH_CHECK(
      vocabulary >= 1 &&
          (vocabulary >= 2 || options.form == SmoothingForm::kAll),
      "[",
      op,
      "] the vocabulary must hold ",
      options.form == SmoothingForm::kAll ? 1 : 2,
      " words or more, but got ",
      vocabulary);
  TORCH_CHECK(
      options.chunk_rows >= 0,
      "[",
      op,
      "] chunk_rows must be >= 0, but got ",
      options.chunk_rows);
}

void check_target(
    std::string_view op,
    const at::Tensor& target,
    int64_t rows,
    int64_t vocabulary,
    int64_t ignore_index) {
  TORCH_CHECK(
      target.defined() && target.device().is_cpu() &&
          target.scalar_type() == at::kLong && target.dim() == 1 &&
          target.size(0) == rows,
      "[",
      op,
      "] target must be int64 [M] on the CPU with M = ",
      rows,
      ", but got ",
      target.scalar_type(),
      " ",
      target.sizes());
  const at::Tensor ids = target.contiguous();
  const int64_t* id = ids.const_data_ptr<int64_t>();
  for (int64_t r = 0; r < rows; ++r)
    TORCH_CHECK(
        (id[r] >= 0 && id[r] < vocabulary) || id[r] == ignore_index,
        "[",
        op,
        "] targets must be in [0, ",
        vocabulary,
        ") or the ignored ",
        ignore_index,
        ", but got ",
        id[r],
        " in row ",
        r);
}

/// The rows that count. Without padding these are the tensors themselves.
struct CountedRows {
  at::Tensor hidden;  ///< [M', C]
  at::Tensor target;  ///< [M']
  at::Tensor index;   ///< [M'] row numbers; undefined when all count
};

CountedRows select_rows(
    const at::Tensor& hidden,
    const at::Tensor& target,
    int64_t ignore_index) {
  const at::Tensor ids = target.contiguous();
  const int64_t* id = ids.const_data_ptr<int64_t>();
  std::vector<int64_t> rows;
  rows.reserve(static_cast<size_t>(ids.numel()));
  for (int64_t r = 0; r < ids.numel(); ++r)
    if (id[r] != ignore_index)
      rows.push_back(r);
  if (static_cast<int64_t>(rows.size()) == ids.numel())
    return {hidden.contiguous(), ids, {}};
  const at::Tensor index = at::tensor(rows, ids.options());
  return {hidden.index_select(0, index), ids.index_select(0, index), index};
}

/// Rows of a chunk: what was asked for, or equal chunks of about kChunkBytes.
int64_t chunk_rows(
    int64_t rows,
    const at::Tensor& weight,
    const CrossEntropyOptions& options) {
  if (options.chunk_rows > 0)
    return std::min(options.chunk_rows, rows);
  const int64_t row_bytes = weight.size(0) * weight.element_size();
  const int64_t max = std::max(kMinChunkRows, kChunkBytes / row_bytes);
  const int64_t chunks = (rows + max - 1) / max;
  return (rows + chunks - 1) / chunks;
}

struct LossAndGradients {
  at::Tensor loss, nll;                 ///< scalars of hidden's type
  at::Tensor grad_hidden, grad_weight;  ///< undefined where not wanted
};

/// One pass over the rows: logits of a chunk, their loss and gradient in place,
/// and the chunk's share of both gradients.
class ChunkedLoss {
 public:
  ChunkedLoss(
      const CountedRows& rows,
      const at::Tensor& weight,
      const CrossEntropyOptions& options,
      bool want_hidden,
      bool want_weight)
      : rows_(rows),
        weight_(weight),
        smoothed_(smoothed_loss(options, weight.size(0))),
        loss_(static_cast<size_t>(rows.target.numel())),
        nll_(loss_.size()) {
    if (want_hidden)
      grad_hidden_ = at::empty_like(rows.hidden);
    if (want_weight)
      grad_weight_ = at::empty_like(weight);
    const int64_t count = rows.target.numel();
    const int64_t step = count == 0 ? 1 : chunk_rows(count, weight, options);
    logits_ =
        at::empty({std::min(step, count), weight.size(0)}, weight.options());
    for (int64_t first = 0; first < count; first += step)
      run_chunk(first, std::min(step, count - first));
    if (count == 0 && want_weight)
      grad_weight_.zero_();
  }

  LossAndGradients result() const {
    double loss = 0, nll = 0;
    for (size_t r = 0; r < loss_.size(); ++r) {
      loss += loss_[r];
      nll += nll_[r];
    }
    const auto options = weight_.options();
    return {
        at::scalar_tensor(loss, options),
        at::scalar_tensor(nll, options),
        grad_hidden_,
        grad_weight_};
  }

 private:
  void run_chunk(int64_t first, int64_t count) {
    const at::Tensor hidden = rows_.hidden.narrow(0, first, count);
    at::Tensor logits = logits_.narrow(0, 0, count);  // [count, V]
    at::mm_out(logits, hidden, weight_.t());
    dispatch_type(logits, [&]<class T>(T) {
      kernels::CrossEntropyRows<T> pass;
      pass.rows = count;
      pass.vocabulary = weight_.size(0);
      pass.logits = logits.template mutable_data_ptr<T>();
      pass.target = rows_.target.template const_data_ptr<int64_t>() + first;
      pass.loss = loss_.data() + first;
      pass.nll = nll_.data() + first;
      pass.with_gradient = grad_hidden_.defined() || grad_weight_.defined();
      kernels::cross_entropy(pass, smoothed_, parallel_for());
    });
    if (grad_hidden_.defined()) {
      at::Tensor grad = grad_hidden_.narrow(0, first, count);
      at::mm_out(grad, logits, weight_);
    }
    if (grad_weight_.defined()) {
      if (first == 0)
        at::mm_out(grad_weight_, logits.t(), hidden);
      else
        grad_weight_.addmm_(logits.t(), hidden);
    }
  }

  const CountedRows& rows_;
  const at::Tensor& weight_;
  kernels::SmoothedLoss smoothed_;
  std::vector<double> loss_, nll_;
  at::Tensor logits_;  ///< [chunk, V], reused
  at::Tensor grad_hidden_, grad_weight_;
};

LossAndGradients compute(
    const at::Tensor& hidden,
    const at::Tensor& weight,
    const at::Tensor& target,
    const CrossEntropyOptions& options,
    bool want_hidden,
    bool want_weight) {
  const at::NoGradGuard no_grad;
  const CountedRows rows = select_rows(hidden, target, options.ignore_index);
  const at::Tensor table = weight.contiguous();
  LossAndGradients out =
      ChunkedLoss(rows, table, options, want_hidden, want_weight).result();
  if (want_hidden && rows.index.defined()) {
    at::Tensor all = at::zeros_like(hidden, at::MemoryFormat::Contiguous);
    all.index_copy_(0, rows.index, out.grad_hidden);
    out.grad_hidden = all;
  }
  return out;
}

class LinearCrossEntropyFunction
    : public torch::autograd::Function<LinearCrossEntropyFunction> {
 public:
  static variable_list forward(
      AutogradContext* ctx,
      const at::Tensor& hidden,
      const at::Tensor& weight,
      const at::Tensor& target,
      const CrossEntropyOptions& options) {
    const LossAndGradients out = compute(
        hidden,
        weight,
        target,
        options,
        hidden.requires_grad(),
        weight.requires_grad());
    ctx->save_for_backward({out.grad_hidden, out.grad_weight});
    ctx->mark_non_differentiable({out.nll});
    return {out.loss, out.nll};
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    check_first_derivative("linear_cross_entropy");
    const double scale = grads[0].item<double>();
    variable_list out = ctx->get_saved_variables();
    for (at::Tensor& grad : out)
      if (grad.defined() && scale != 1)
        grad = grad * scale;
    out.resize(4);
    return out;
  }
};

}  // namespace

CrossEntropySums linear_cross_entropy(
    const at::Tensor& hidden,
    const at::Tensor& weight,
    const at::Tensor& target,
    const CrossEntropyOptions& options) {
  constexpr std::string_view op = "linear_cross_entropy";
  check_input(op, "hidden", hidden);
  check_same_type(op, "weight", weight, hidden);
  TORCH_CHECK(
      hidden.dim() == 2 && weight.dim() == 2 &&
          hidden.size(1) == weight.size(1),
      "[linear_cross_entropy] hidden must be [M, C] and weight [V, C], but "
      "got ",
      hidden.sizes(),
      " and ",
      weight.sizes());
  check_options(op, options, weight.size(0));
  check_target(
      op,
      target,
      hidden.size(0),
      weight.size(0),
      options.ignore_index);
  if (c10::GradMode::is_enabled() &&
      (hidden.requires_grad() || weight.requires_grad())) {
    const variable_list out =
        LinearCrossEntropyFunction::apply(hidden, weight, target, options);
    return {out[0], out[1]};
  }
  const LossAndGradients out = compute(
      hidden,
      weight,
      target,
      options,
      /*want_hidden=*/false,
      /*want_weight=*/false);
  return {out.loss, out.nll};
}

CrossEntropySums cross_entropy_reference(
    const at::Tensor& logits,
    const at::Tensor& target,
    const CrossEntropyOptions& options) {
  constexpr std::string_view op = "cross_entropy_reference";
  TORCH_CHECK(
      logits.dim() == 2,
      "[cross_entropy_reference] logits must be [M, V], but got ",
      logits.sizes());
  check_options(op, options, logits.size(1));
  check_target(
      op,
      target,
      logits.size(0),
      logits.size(1),
      options.ignore_index);
  const auto smoothed = smoothed_loss(options, logits.size(1));
  const at::Tensor log_p = at::log_softmax(logits, -1);  // [M, V]
  const at::Tensor counted = target.ne(options.ignore_index);
  const at::Tensor safe = target.masked_fill(counted.logical_not(), 0);
  const at::Tensor zero = at::zeros_like(log_p.select(1, 0));
  const at::Tensor chosen = log_p.gather(1, safe.unsqueeze(1)).squeeze(1);
  const at::Tensor nll = at::where(counted, -chosen, zero).sum();
  at::Tensor loss = smoothed.nll_weight * nll;
  if (smoothed.uniform != 0)
    loss =
        loss + smoothed.uniform * at::where(counted, -log_p.sum(1), zero).sum();
  return {loss, nll.detach()};
}

}  // namespace seqconv::ops
