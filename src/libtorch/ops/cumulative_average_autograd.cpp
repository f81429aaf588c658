#include <torch/library.h>

#include "libtorch/ops/autograd_common.h"
#include "libtorch/ops/cumulative_average_ops.h"

namespace seqconv::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Runs one direction; its gradient is the other, as often as one asks.
template <bool kTransposed>
class AverageFunction : public torch::autograd::Function<AverageFunction<kTransposed>> {
 public:
  static at::Tensor forward(
      AutogradContext* ctx, const at::Tensor& x, const OptionalTensor& lengths) {
    ctx->save_for_backward({lengths.value_or(at::Tensor())});
    at::AutoDispatchBelowADInplaceOrView below;
    return (kTransposed ? average_backward_op() : average_op()).call(x, lengths);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const OptionalTensor lengths = if_defined(ctx->get_saved_variables()[0]);
    return {
        (kTransposed ? average_op() : average_backward_op()).call(grads[0], lengths), at::Tensor()};
  }
};

at::Tensor average_autograd(const at::Tensor& x, const OptionalTensor& lengths) {
  check_no_tangent(kAverage, {&x});
  return AverageFunction</*kTransposed=*/false>::apply(x, lengths);
}

at::Tensor average_backward_autograd(const at::Tensor& grad, const OptionalTensor& lengths) {
  check_no_tangent(kAverage, {&grad});
  return AverageFunction</*kTransposed=*/true>::apply(grad, lengths);
}

at::Tensor average_step_autograd(
    const at::Tensor& x, at::Tensor& state, const at::Tensor& position) {
  check_not_differentiated(kAverageStep, {&x, &state});
  at::AutoDispatchBelowAutograd below;
  return average_step_op().call(x, state, position);
}

at::Tensor average_step_inplace(
    const at::Tensor& x, at::Tensor& state, const at::Tensor& position) {
  return change_in_place(state, [&] { return average_step_op().call(x, state, position); });
}

}  // namespace

TORCH_LIBRARY_IMPL(seqconv, Autograd, m) {
  m.impl(kAverage, average_autograd);
  m.impl(kAverageBackward, average_backward_autograd);
  m.impl(kAverageStep, average_step_autograd);
}

TORCH_LIBRARY_IMPL(seqconv, ADInplaceOrView, m) {
  m.impl(kAverageStep, average_step_inplace);
}

}  // namespace seqconv::ops
