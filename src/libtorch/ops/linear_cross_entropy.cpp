#include "libtorch/ops/linear_cross_entropy.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <vector>

#include "libtorch/ops/device.h"
#include "libtorch/ops/fused_common.h"
#include "libtorch/ops/product_sizes.h"
#include "libtorch/ops/row_losses.h"

namespace seqconv::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Logits of a chunk: few enough to stay in a shared cache between their three
/// passes, rows enough for the products (of 864 x 256 x 6000, one thread: 128
/// rows took 17 % longer than all at once, 288 took 7 %, 432 took 2 %).
constexpr int64_t kChunkBytes = 16 << 20;
/// Other devices want larger products.
constexpr int64_t kDeviceChunkBytes = 256 << 20;
constexpr int64_t kMinChunkRows = 64;

kernels::SmoothedLoss smoothed_loss(const CrossEntropyOptions& options, int64_t vocabulary) {
  const double e = options.smoothing;
  switch (options.form) {
    case SmoothingForm::kAll:
      return {1 - e, e / static_cast<double>(vocabulary)};
    case SmoothingForm::kOthers: {
      const double each = e > 0 ? e / static_cast<double>(vocabulary - 1) : 0.0;
      return {1 - e - each, each};
    }
  }
  SEQCONV_CHECK_OP("linear_cross_entropy", false, "unknown smoothing form");
}

void check_options(std::string_view op, const CrossEntropyOptions& options, int64_t vocabulary) {
  SEQCONV_CHECK_OP(
      op,
      options.smoothing >= 0 && options.smoothing < 1,
      "smoothing must be in [0, 1), but got {}",
      options.smoothing);
  SEQCONV_CHECK_OP(
      op,
      vocabulary >= 1 && (vocabulary >= 2 || options.form == SmoothingForm::kAll),
      "the vocabulary must hold {} words or more, but got {}",
      options.form == SmoothingForm::kAll ? 1 : 2,
      vocabulary);
  SEQCONV_CHECK_OP(
      op, options.chunk_rows >= 0, "chunk_rows must be >= 0, but got {}", options.chunk_rows);
}

void check_target(
    std::string_view op,
    const at::Tensor& target,
    int64_t rows,
    int64_t vocabulary,
    int64_t ignore_index) {
  SEQCONV_CHECK_OP(
      op,
      target.defined() && target.device().is_cpu() && target.scalar_type() == at::kLong &&
          target.dim() == 1 && target.size(0) == rows,
      "target must be int64 [M] on the CPU with M = {}, but got {} {}",
      rows,
      target.scalar_type(),
      target.sizes());
  const at::Tensor ids = target.contiguous();
  const int64_t* id = ids.const_data_ptr<int64_t>();
  for (int64_t r = 0; r < rows; ++r)
    SEQCONV_CHECK_OP(
        op,
        (id[r] >= 0 && id[r] < vocabulary) || id[r] == ignore_index,
        "targets must be in [0, {}) or the ignored {}, but got {} in row {}",
        vocabulary,
        ignore_index,
        id[r],
        r);
}

/// The rows that count, on hidden's device. Without padding these are the
/// tensors themselves.
struct CountedRows {
  at::Tensor hidden;  ///< [M', C]
  at::Tensor target;  ///< [M']
  at::Tensor index;   ///< [M'] row numbers; undefined when all count
};

CountedRows select_rows(const at::Tensor& hidden, const at::Tensor& target, int64_t ignore_index) {
  const at::Tensor ids = target.contiguous();
  const int64_t* id = ids.const_data_ptr<int64_t>();
  std::vector<int64_t> rows;
  rows.reserve(static_cast<size_t>(ids.numel()));
  for (int64_t r = 0; r < ids.numel(); ++r)
    if (id[r] != ignore_index)
      rows.push_back(r);
  if (static_cast<int64_t>(rows.size()) == ids.numel())
    return {hidden.contiguous(), to_device(ids, hidden.device()), {}};
  const at::Tensor index = at::tensor(rows, ids.options());
  const at::Tensor there = to_device(index, hidden.device());
  return {
      hidden.index_select(0, there), to_device(ids.index_select(0, index), hidden.device()), there};
}

/// Rows of a chunk: what was asked for, or equal chunks of about kChunkBytes.
int64_t chunk_rows(int64_t rows, const at::Tensor& weight, const CrossEntropyOptions& options) {
  if (options.chunk_rows > 0)
    return std::min(options.chunk_rows, rows);
  const int64_t row_bytes = weight.size(0) * weight.element_size();
  const int64_t bytes = weight.is_cpu() ? kChunkBytes : kDeviceChunkBytes;
  const int64_t max = std::max(kMinChunkRows, bytes / row_bytes);
  const int64_t chunks = (rows + max - 1) / max;
  return (rows + chunks - 1) / chunks;
}

struct LossAndGradients {
  at::Tensor loss, nll;                 ///< scalars, float32 or float64
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
        hidden_(rows.hidden),
        weight_(weight.to(rows.hidden.scalar_type())),
        losses_(smoothed_loss(options, weight.size(0)), options.gradient_scale, weight.device()) {
    const int64_t count = rows.target.numel();
    const int64_t step = count == 0 ? 1 : product_rows(chunk_rows(count, weight, options));
    const int64_t last = count == 0 ? 0 : (count - 1) / step * step;
    // Rows of zeros, which have no part in any gradient.
    const int64_t more = last + product_rows(count - last) - count;
    if (more > 0)
      hidden_ = at::constant_pad_nd(hidden_, {0, 0, 0, more});
    if (want_hidden)
      grad_hidden_ = at::empty_like(hidden_);
    if (want_weight)
      grad_weight_ = at::empty_like(weight);
    logits_ = at::empty({std::min(step, hidden_.size(0)), weight.size(0)}, weight_.options());
    for (int64_t first = 0; first < count; first += step)
      run_chunk(first, std::min(step, count - first));
    if (count == 0 && want_weight)
      grad_weight_.zero_();
  }

  LossAndGradients result() const {
    const at::ScalarType type = accumulator_type(weight_.scalar_type());
    return {
        losses_.loss().to(type),
        losses_.nll().to(type),
        grad_hidden_.defined() ? grad_hidden_.narrow(0, 0, rows_.target.numel()) : grad_hidden_,
        grad_weight_};
  }

 private:
  /// How many a product has for so many of its own.
  int64_t product_rows(int64_t rows) const {
    return wants_few_sizes(hidden_) ? few_sizes(rows) : rows;
  }

  void run_chunk(int64_t first, int64_t count) {
    const int64_t rows = product_rows(count);
    const at::Tensor hidden = hidden_.narrow(0, first, rows);
    at::Tensor logits = logits_.narrow(0, 0, rows);  // [rows, V]
    at::mm_out(logits, hidden, weight_.t());
    losses_.add(
        logits.narrow(0, 0, count),
        rows_.target.narrow(0, first, count),
        grad_hidden_.defined() || grad_weight_.defined());
    if (grad_hidden_.defined()) {
      at::Tensor grad = grad_hidden_.narrow(0, first, rows);
      at::mm_out(grad, logits, weight_);
    }
    if (grad_weight_.defined())
      add_weight_gradient(logits, hidden, first == 0);
  }

  /// Chunks add up in the weight's own type.
  void add_weight_gradient(const at::Tensor& logits, const at::Tensor& hidden, bool is_first) {
    if (grad_weight_.scalar_type() != logits.scalar_type()) {
      const at::Tensor share = at::mm(logits.t(), hidden);
      if (is_first)
        grad_weight_.copy_(share);
      else
        grad_weight_.add_(share);
    } else if (is_first) {
      at::mm_out(grad_weight_, logits.t(), hidden);
    } else {
      grad_weight_.addmm_(logits.t(), hidden);
    }
  }

  const CountedRows& rows_;
  at::Tensor hidden_;  ///< theirs, and rows that fill the last product
  at::Tensor weight_;  ///< in hidden's type
  RowLosses losses_;
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
  LossAndGradients out = ChunkedLoss(rows, table, options, want_hidden, want_weight).result();
  if (want_hidden && rows.index.defined()) {
    at::Tensor all = at::zeros_like(hidden, at::MemoryFormat::Contiguous);
    all.index_copy_(0, rows.index, out.grad_hidden);
    out.grad_hidden = all;
  }
  return out;
}

class LinearCrossEntropyFunction : public torch::autograd::Function<LinearCrossEntropyFunction> {
 public:
  static variable_list forward(
      AutogradContext* ctx,
      const at::Tensor& hidden,
      const at::Tensor& weight,
      const at::Tensor& target,
      const CrossEntropyOptions& options) {
    const LossAndGradients out =
        compute(hidden, weight, target, options, hidden.requires_grad(), weight.requires_grad());
    ctx->save_for_backward({out.grad_hidden, out.grad_weight});
    ctx->mark_non_differentiable({out.nll});
    return {out.loss, out.nll};
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    check_first_derivative("linear_cross_entropy");
    variable_list out = ctx->get_saved_variables();
    // Reading it is free on the CPU alone.
    const bool same = grads[0].is_cpu() && grads[0].item<double>() == 1;
    for (at::Tensor& grad : out)
      if (grad.defined() && !same)
        grad = grad * grads[0].to(grad.scalar_type());
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
  check_parameter(op, "weight", weight, hidden);
  SEQCONV_CHECK_OP(
      "linear_cross_entropy",
      hidden.dim() == 2 && weight.dim() == 2 && hidden.size(1) == weight.size(1),
      "hidden must be [M, C] and weight [V, C], but got {} and {}",
      hidden.sizes(),
      weight.sizes());
  check_options(op, options, weight.size(0));
  check_target(op, target, hidden.size(0), weight.size(0), options.ignore_index);
  if (c10::GradMode::is_enabled() && (hidden.requires_grad() || weight.requires_grad())) {
    const variable_list out = LinearCrossEntropyFunction::apply(hidden, weight, target, options);
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
    const at::Tensor& logits, const at::Tensor& target, const CrossEntropyOptions& options) {
  constexpr std::string_view op = "cross_entropy_reference";
  SEQCONV_CHECK_OP(
      "cross_entropy_reference",
      logits.dim() == 2,
      "logits must be [M, V], but got {}",
      logits.sizes());
  check_options(op, options, logits.size(1));
  check_target(op, target, logits.size(0), logits.size(1), options.ignore_index);
  const auto smoothed = smoothed_loss(options, logits.size(1));
  const at::Tensor log_p = at::log_softmax(logits, -1);  // [M, V]
  const at::Tensor counted = target.ne(options.ignore_index);
  const at::Tensor safe = target.masked_fill(counted.logical_not(), 0);
  const at::Tensor zero = at::zeros_like(log_p.select(1, 0));
  const at::Tensor chosen = log_p.gather(1, safe.unsqueeze(1)).squeeze(1);
  const at::Tensor nll = at::where(counted, -chosen, zero).sum();
  at::Tensor loss = smoothed.nll_weight * nll;
  if (smoothed.uniform != 0)
    loss = loss + smoothed.uniform * at::where(counted, -log_p.sum(1), zero).sum();
  return {loss, nll.detach()};
}

}  // namespace seqconv::ops
