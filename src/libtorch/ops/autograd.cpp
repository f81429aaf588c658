#include "libtorch/ops/autograd_common.h"
#include "libtorch/ops/conv_ops.h"
#include "libtorch/ops/kernel_arguments.h"
#include "libtorch/ops/second_derivatives.h"
#include "libtorch/ops/talk_ops.h"
#include "seqconv/ops/dynamicconv.h"
#include "seqconv/ops/lightconv.h"
#include "seqconv/ops/talk.h"

/// Autograd of lightconv, dynamicconv and talk: the same over different arguments.
namespace seqconv::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

/// Keeps what backward takes, and one tensor more: of a convolution x and the logits, from which
/// taps are made again.
void save(
    AutogradContext* ctx, const ConvArguments& args, const at::Tensor& beside = at::Tensor()) {
  ctx->save_for_backward(
      {args.x,
       args.logits,
       or_undefined(args.drop.seed),
       or_undefined(args.drop.mask),
       or_undefined(args.lengths),
       beside});
  ctx->saved_data["padding_left"] = args.padding_left;
  ctx->saved_data["normalization"] = std::string(args.normalization);
  ctx->saved_data["renormalize_edges"] = args.renormalize_edges;
  ctx->saved_data["drop_p"] = args.drop.p;
}

/// Calls work(arguments) with what was kept of a convolution.
template <class Work>
auto with_saved(ConvArguments*, AutogradContext* ctx, const Work& work) {
  const variable_list saved = ctx->get_saved_variables();
  const OptionalTensor lengths = if_defined(saved[4]);
  auto& data = ctx->saved_data;
  return work(ConvArguments{
      .x = saved[0],
      .logits = saved[1],
      .padding_left = data["padding_left"].toSymInt(),
      .normalization = data["normalization"].toStringRef(),
      .renormalize_edges = data["renormalize_edges"].toBool(),
      .drop = {data["drop_p"].toDouble(), if_defined(saved[2]), if_defined(saved[3])},
      .lengths = lengths});
}

void save(
    AutogradContext* ctx, const TalkArguments& args, const at::Tensor& beside = at::Tensor()) {
  ctx->save_for_backward(
      {args.x,
       args.offset_left,
       or_undefined(args.offset_right),
       or_undefined(args.lengths),
       beside});
  ctx->saved_data["max_left"] = args.max_left;
  ctx->saved_data["max_right"] = args.max_right;
}

template <class Work>
auto with_saved(TalkArguments*, AutogradContext* ctx, const Work& work) {
  const variable_list saved = ctx->get_saved_variables();
  const OptionalTensor right = if_defined(saved[2]), lengths = if_defined(saved[3]);
  return work(TalkArguments{
      .x = saved[0],
      .offset_left = saved[1],
      .offset_right = right,
      .max_left = ctx->saved_data["max_left"].toInt(),
      .max_right = ctx->saved_data["max_right"].toInt(),
      .lengths = lengths});
}

/// The definitions of the operators, of other tensors to be differentiated.
ConvOptions options_of(const ConvArguments& args, const at::Tensor& bias) {
  return {
      .padding_left = args.padding_left.guard_int(__FILE__, __LINE__),
      .normalization = parse_normalization(args.op, args.normalization),
      .renormalize_edges = args.renormalize_edges,
      .drop = args.drop,
      .bias = if_defined(bias),
      .lengths = args.lengths};
}
at::Tensor define(LightConvKind, const ConvArguments& args, const variable_list& in) {
  return lightconv_reference(in[0], in[1], options_of(args, in[2]));
}
at::Tensor define(DynamicConvKind, const ConvArguments& args, const variable_list& in) {
  return dynamicconv_reference(in[0], in[1], options_of(args, in[2]));
}
at::Tensor define(TalkKind, const TalkArguments& args, const variable_list& in) {
  const TalkOptions options = {args.max_left, args.max_right, args.lengths};
  return talk_reference(in[0], in[1], if_defined(in[2]), options);
}

/// The third input of a definition: a bias, whose values no gradient depends on.
at::Tensor third_of(const ConvArguments& args) {
  const auto type = accumulator_type(args.x.scalar_type());
  return at::zeros_symint({args.x.sym_size(2)}, args.x.options().dtype(type));
}
at::Tensor third_of(const TalkArguments& args) {
  return or_undefined(args.offset_right);
}

/// The gradient as an operator of its own, which is differentiated by the definition.
template <class Kind>
class BackwardFunction : public Function<BackwardFunction<Kind>> {
 public:
  static variable_list forward(
      AutogradContext* ctx,
      const at::Tensor& grad,
      const at::Tensor& /*x*/,
      const at::Tensor& /*second*/,
      const OptionalTensor& /*third*/,
      const typename Kind::Arguments& args,
      const GradientMask& wanted) {
    save(ctx, args, grad);
    ctx->saved_data["wanted"] = c10::List<bool>(wanted);
    ctx->set_materialize_grads(false);
    at::AutoDispatchBelowADInplaceOrView below;
    auto [grad_x, grad_second, grad_third] = Kind::Dispatch::backward(args, grad, wanted);
    return {grad_x, grad_second, grad_third};
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& cotangents) {
    const at::Tensor grad = ctx->get_saved_variables().back();
    const std::vector<bool> wanted = ctx->saved_data["wanted"].toBoolList().vec();
    typename Kind::Arguments* const kind = nullptr;
    return with_saved(kind, ctx, [&](const typename Kind::Arguments& args) {
      const auto [x, second, third] = args.inputs();
      const auto definition = [&](const variable_list& in) { return define(Kind(), args, in); };
      variable_list all = differentiate_gradients(
          definition, grad, {x, second, third_of(args)}, wanted, cotangents);
      all.resize(all.size() + 2);  // the arguments, and which gradients were wanted
      return all;
    });
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
    typename Kind::Arguments* const kind = nullptr;
    auto [grad_x, grad_second, grad_third] =
        with_saved(kind, ctx, [&](const typename Kind::Arguments& args) {
          return Kind::Dispatch::backward(args, outputs[0], wanted);
        });
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
