#include "libtorch/ops/autograd_common.h"
#include "libtorch/ops/conv_ops.h"
#include "libtorch/ops/talk_ops.h"

/// Autograd of lightconv, dynamicconv and talk: the same over different arguments.
namespace seqconv::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

/// Keeps what backward takes: of a convolution x and the logits, from which taps are made again.
void save(AutogradContext* ctx, const ConvArguments& args) {
  ctx->save_for_backward(
      {args.x,
       args.logits,
       or_undefined(args.drop.seed),
       or_undefined(args.drop.mask),
       or_undefined(args.lengths)});
  ctx->saved_data["padding_left"] = args.padding_left;
  ctx->saved_data["normalization"] = std::string(args.normalization);
  ctx->saved_data["renormalize_edges"] = args.renormalize_edges;
  ctx->saved_data["drop_p"] = args.drop.p;
}

/// Calls backward with what was kept.
template <class Kind>
Gradients backward_of_saved(
    ConvDispatch<Kind> op,
    AutogradContext* ctx,
    const at::Tensor& grad,
    const GradientMask& wanted) {
  const variable_list saved = ctx->get_saved_variables();
  const OptionalTensor lengths = if_defined(saved[4]);
  auto& data = ctx->saved_data;
  return op.backward(
      {.x = saved[0],
       .logits = saved[1],
       .padding_left = data["padding_left"].toSymInt(),
       .normalization = data["normalization"].toStringRef(),
       .renormalize_edges = data["renormalize_edges"].toBool(),
       .drop = {data["drop_p"].toDouble(), if_defined(saved[2]), if_defined(saved[3])},
       .lengths = lengths},
      grad,
      wanted);
}

void save(AutogradContext* ctx, const TalkArguments& args) {
  ctx->save_for_backward(
      {args.x, args.offset_left, or_undefined(args.offset_right), or_undefined(args.lengths)});
  ctx->saved_data["max_left"] = args.max_left;
  ctx->saved_data["max_right"] = args.max_right;
}

Gradients backward_of_saved(
    TalkDispatch op, AutogradContext* ctx, const at::Tensor& grad, const GradientMask& wanted) {
  const variable_list saved = ctx->get_saved_variables();
  const OptionalTensor right = if_defined(saved[2]), lengths = if_defined(saved[3]);
  return op.backward(
      {.x = saved[0],
       .offset_left = saved[1],
       .offset_right = right,
       .max_left = ctx->saved_data["max_left"].toInt(),
       .max_right = ctx->saved_data["max_right"].toInt(),
       .lengths = lengths},
      grad,
      wanted);
}

/// The gradient as an operator of its own, so that asking for a second one
/// says clearly that there is none.
template <class Kind>
class BackwardFunction : public Function<BackwardFunction<Kind>> {
 public:
  static variable_list forward(
      AutogradContext* /*ctx*/,
      const at::Tensor& grad,
      const at::Tensor& /*x*/,
      const at::Tensor& /*second*/,
      const OptionalTensor& /*third*/,
      const typename Kind::Arguments& args,
      const GradientMask& wanted) {
    at::AutoDispatchBelowADInplaceOrView below;
    auto [grad_x, grad_second, grad_third] = Kind::Dispatch::backward(args, grad, wanted);
    return {grad_x, grad_second, grad_third};
  }

  static variable_list backward(AutogradContext*, const variable_list&) {
    SEQCONV_CHECK_OP(Kind::kForward, false, "double backward is not supported");
  }
};

template <class Kind>
class ForwardFunction : public Function<ForwardFunction<Kind>> {
 public:
  static at::Tensor forward(
      AutogradContext* ctx,
      const at::Tensor& /*x*/,
      const at::Tensor& /*second*/,
      const OptionalTensor& third,
      const typename Kind::Arguments& args) {
    save(ctx, args);
    ctx->saved_data["has_third"] = third.has_value();
    at::AutoDispatchBelowADInplaceOrView below;
    return Kind::Dispatch::forward(args);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& outputs) {
    // Edges are counted without a third input that is not there.
    const bool has_third = ctx->saved_data["has_third"].toBool();
    const GradientMask wanted = {
        ctx->needs_input_grad(0), ctx->needs_input_grad(1), has_third && ctx->needs_input_grad(2)};
    auto [grad_x, grad_second, grad_third] =
        backward_of_saved(typename Kind::Dispatch(), ctx, outputs[0], wanted);
    // One that is not wanted came back as [0]; the arguments have none.
    variable_list grads = {grad_x, grad_second, grad_third, at::Tensor()};
    for (size_t i = 0; i < wanted.size(); ++i)
      if (!wanted[i])
        grads[i].reset();
    return grads;
  }
};

template <class Kind>
struct Autograd : Kind {
  using Arguments = typename Kind::Arguments;

  static at::Tensor forward(const Arguments& args) {
    const auto [x, second, third] = args.inputs();
    check_no_tangent(Kind::kForward, {&x, &second, pointer_to(third)});
    return ForwardFunction<Kind>::apply(x, second, third, args);
  }

  static Gradients backward(
      const Arguments& args, const at::Tensor& grad, const GradientMask& wanted) {
    const auto [x, second, third] = args.inputs();
    check_no_tangent(Kind::kForward, {&grad, &x, &second, pointer_to(third)});
    const variable_list grads = BackwardFunction<Kind>::apply(grad, x, second, third, args, wanted);
    return {grads[0], grads[1], grads[2]};
  }

  static at::Tensor step(const Arguments& args, at::Tensor& state, const at::Tensor& position) {
    const auto [x, second, third] = args.inputs();
    check_not_differentiated(Kind::kStep, {&x, &state, &second, pointer_to(third)});
    at::AutoDispatchBelowAutograd below;
    return Kind::Dispatch::step(args, state, position);
  }
};

template <class Kind>
struct InplaceOrView : Kind {
  static at::Tensor step(
      const typename Kind::Arguments& args, at::Tensor& state, const at::Tensor& position) {
    return change_in_place(state, [&] { return Kind::Dispatch::step(args, state, position); });
  }
};

}  // namespace

TORCH_LIBRARY_IMPL(seqconv, Autograd, m) {
  register_impl<Autograd<LightConvKind>>(m);
  register_impl<Autograd<DynamicConvKind>>(m);
  register_impl<Autograd<TalkKind>>(m);
}

TORCH_LIBRARY_IMPL(seqconv, ADInplaceOrView, m) {
  register_impl<InplaceOrView<LightConvKind>>(m);
  register_impl<InplaceOrView<DynamicConvKind>>(m);
  register_impl<InplaceOrView<TalkKind>>(m);
}

}  // namespace seqconv::ops
