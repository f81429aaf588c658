#include <ATen/Functions.h>

#include "libtorch/ops/autograd_common.h"
#include "libtorch/ops/second_derivatives.h"
#include "libtorch/ops/short_conv_ops.h"

/// Autograd of short_conv, and its shapes without values.
namespace seqconv::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

std::array<const at::Tensor*, 5> inputs_of(const ShortConvArguments& args) {
  return {
      &args.x,
      pointer_to(args.weight),
      pointer_to(args.dynamic),
      pointer_to(args.bias),
      pointer_to(args.initial_state)};
}

void check_no_tangent(const ShortConvArguments& args) {
  for (const at::Tensor* input : inputs_of(args))
    ops::check_no_tangent(kShortConv, {input});
}

/// Tensors among the arguments.
constexpr size_t kSaved = 10;

/// Keeps all arguments, and one tensor more: taps and sums are made again.
void save(
    AutogradContext* ctx, const ShortConvArguments& args, const at::Tensor& beside = at::Tensor()) {
  ctx->save_for_backward(
      {args.x,
       or_undefined(args.weight),
       or_undefined(args.dynamic),
       or_undefined(args.bias),
       or_undefined(args.initial_state),
       or_undefined(args.drop.seed),
       or_undefined(args.drop.mask),
       or_undefined(args.lengths),
       or_undefined(args.cu_seqlens),
       or_undefined(args.seq_idx),
       beside});
  auto& data = ctx->saved_data;
  data["dilation"] = args.dilation;
  if (args.padding_left)
    data["padding_left"] = *args.padding_left;
  data["activation"] = std::string(args.activation);
  data["residual"] = args.residual;
  data["normalization"] = std::string(args.normalization);
  data["renormalize_edges"] = args.renormalize_edges;
  data["drop_p"] = args.drop.p;
}

/// Calls work(arguments) with what was kept.
template <class Work>
auto with_saved(AutogradContext* ctx, const Work& work) {
  const variable_list saved = ctx->get_saved_variables();
  std::array<OptionalTensor, kSaved> tensors;
  for (size_t i = 0; i < kSaved; ++i)
    tensors[i] = if_defined(saved[i]);
  auto& data = ctx->saved_data;
  std::optional<c10::SymInt> left;
  if (data.count("padding_left") > 0)
    left = data["padding_left"].toSymInt();
  return work(ShortConvArguments{
      .op = kShortConv,
      .x = saved[0],
      .weight = tensors[1],
      .dynamic = tensors[2],
      .bias = tensors[3],
      .initial_state = tensors[4],
      .dilation = data["dilation"].toInt(),
      .padding_left = left,
      .activation = data["activation"].toStringRef(),
      .residual = data["residual"].toBool(),
      .normalization = data["normalization"].toStringRef(),
      .renormalize_edges = data["renormalize_edges"].toBool(),
      .drop = {data["drop_p"].toDouble(), tensors[5], tensors[6]},
      .lengths = tensors[7],
      .cu_seqlens = tensors[8],
      .seq_idx = tensors[9]});
}

/// The gradient as an operator of its own, which is differentiated by the definition.
class ShortConvBackwardFunction : public Function<ShortConvBackwardFunction> {
 public:
  static variable_list forward(
      AutogradContext* ctx,
      const at::Tensor& grad,
      const at::Tensor& /*x*/,
      const OptionalTensor& /*weight*/,
      const OptionalTensor& /*dynamic*/,
      const OptionalTensor& /*bias*/,
      const OptionalTensor& /*initial_state*/,
      const ShortConvArguments& args,
      const ShortConvMask& wanted) {
    save(ctx, args, grad);
    ctx->saved_data["wanted"] = c10::List<bool>(wanted);
    ctx->set_materialize_grads(false);
    at::AutoDispatchBelowADInplaceOrView below;
    auto [x, weight, dynamic, bias, state] = ShortConvDispatch::backward(args, grad, wanted);
    return {x, weight, dynamic, bias, state};
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& cotangents) {
    const at::Tensor grad = ctx->get_saved_variables()[kSaved];
    const std::vector<bool> wanted = ctx->saved_data["wanted"].toBoolList().vec();
    return with_saved(ctx, [&](const ShortConvArguments& args) {
      variable_list inputs;
      for (const at::Tensor* input : inputs_of(args))
        inputs.push_back(input == nullptr ? at::Tensor() : *input);
      const auto definition = [&](const variable_list& in) {
        const auto weight = if_defined(in[1]), dynamic = if_defined(in[2]),
                   bias = if_defined(in[3]), state = if_defined(in[4]);
        return short_conv_reference(in[0], options_of(args, weight, dynamic, bias, state));
      };
      variable_list all = differentiate_gradients(definition, grad, inputs, wanted, cotangents);
      all.resize(all.size() + 2);  // the arguments, and which gradients were wanted
      return all;
    });
  }
};

class ShortConvForwardFunction : public Function<ShortConvForwardFunction> {
 public:
  static at::Tensor forward(
      AutogradContext* ctx,
      const at::Tensor& /*x*/,
      const OptionalTensor& /*weight*/,
      const OptionalTensor& /*dynamic*/,
      const OptionalTensor& /*bias*/,
      const OptionalTensor& /*initial_state*/,
      const ShortConvArguments& args) {
    save(ctx, args);
    const auto inputs = inputs_of(args);
    c10::List<bool> given;
    for (const at::Tensor* input : inputs)
      given.push_back(input != nullptr);
    ctx->saved_data["given"] = given;
    at::AutoDispatchBelowADInplaceOrView below;
    return ShortConvDispatch::forward(args);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& outputs) {
    const auto given = ctx->saved_data["given"].toBoolList();
    ShortConvMask wanted{};
    // Edges are counted without inputs that are not there.
    for (size_t i = 0, edge = 0; i < wanted.size(); ++i)
      if (given[i])
        wanted[i] = ctx->needs_input_grad(edge++);
    auto [x, weight, dynamic, bias, state] = with_saved(ctx, [&](const ShortConvArguments& args) {
      return ShortConvDispatch::backward(args, outputs[0], wanted);
    });
    // One that is not wanted came back as [0]; the arguments have none.
    variable_list grads = {x, weight, dynamic, bias, state, at::Tensor()};
    for (size_t i = 0; i < wanted.size(); ++i)
      if (!wanted[i])
        grads[i].reset();
    return grads;
  }
};

struct ShortConvAutograd : ShortConvKind {
  static at::Tensor forward(const ShortConvArguments& args) {
    check_no_tangent(args);
    return ShortConvForwardFunction::apply(
        args.x, args.weight, args.dynamic, args.bias, args.initial_state, args);
  }

  static ShortConvGradients backward(
      const ShortConvArguments& args, const at::Tensor& grad, const ShortConvMask& wanted) {
    check_no_tangent(args);
    ops::check_no_tangent(kShortConv, {&grad});
    const variable_list grads = ShortConvBackwardFunction::apply(
        grad, args.x, args.weight, args.dynamic, args.bias, args.initial_state, args, wanted);
    return {grads[0], grads[1], grads[2], grads[3], grads[4]};
  }

  static at::Tensor step(
      const ShortConvStepArguments& args, at::Tensor& ring, at::Tensor& positions) {
    check_not_differentiated(
        kStep,
        {&args.x, &ring, pointer_to(args.weight), pointer_to(args.dynamic), pointer_to(args.bias)});
    at::AutoDispatchBelowAutograd below;
    return ShortConvDispatch::step(args, ring, positions);
  }
};

struct ShortConvInplaceOrView : ShortConvKind {
  static at::Tensor step(
      const ShortConvStepArguments& args, at::Tensor& ring, at::Tensor& positions) {
    return change_in_place(positions, [&] {
      return change_in_place(ring, [&] { return ShortConvDispatch::step(args, ring, positions); });
    });
  }
};

struct ShortConvMeta : ShortConvKind {
  static at::Tensor forward(const ShortConvArguments& args) {
    check(args);
    return at::empty_symint(args.x.sym_sizes(), args.x.options());
  }
  static ShortConvGradients backward(
      const ShortConvArguments& args, const at::Tensor& grad, const ShortConvMask& wanted) {
    check(args);
    check_gradient(args.op, grad, args.x);
    return empty_gradients(args, wanted);
  }
  static at::Tensor step(
      const ShortConvStepArguments& args, at::Tensor& ring, at::Tensor& positions) {
    check_short_conv_step(args, ring, positions);
    return at::empty_symint(args.x.sym_sizes(), args.x.options());
  }
  static void rollback(at::Tensor&, const at::Tensor&, int64_t) {}
};

}  // namespace

TORCH_LIBRARY_IMPL(seqconv, Autograd, m) {
  register_impl<ShortConvAutograd>(m);
}

TORCH_LIBRARY_IMPL(seqconv, ADInplaceOrView, m) {
  register_impl<ShortConvInplaceOrView>(m);
}

TORCH_LIBRARY_IMPL(seqconv, Meta, m) {
  register_impl<ShortConvMeta>(m);
  m.impl(kShortConvRollback, ShortConvMeta::rollback);
}

}  // namespace seqconv::ops
