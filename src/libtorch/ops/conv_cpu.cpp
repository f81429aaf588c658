#include <ATen/Functions.h>

#include "kernels/conv.h"
#include "libtorch/ops/conv_ops.h"
#include "libtorch/ops/kernel_arguments.h"
#include "libtorch/ops/kernel_taps.h"
#include "libtorch/ops/sequence_values.h"

/// short_conv, lightconv and dynamicconv on the CPU: arguments are checked, made
/// dense and handed to the kernels. The latter two are short_conv with the softmax,
/// or another normalisation, of static taps or of taps of positions.
namespace seqconv::ops {
namespace {

using kernels::AccumulatorOf;
using kernels::ConvBackward;
using kernels::ConvForward;
using kernels::ConvStep;

at::Tensor dense_logits(const ShortConvArguments& args, const at::Tensor& taps) {
  // Few static ones are converted to the type that sums are kept in, those of
  // positions are as large as x and read as they are.
  return args.dynamic ? taps : accumulated(taps);
}

/// Calls f with values of the storage types of x and of the logits.
template <class F>
void dispatch(const ShortConvArguments& args, const at::Tensor& logits, const F& f) {
  if (args.dynamic)
    return dispatch_storage_pair(args.x.scalar_type(), logits.scalar_type(), f);
  dispatch_storage(args.x.scalar_type(), [&]<class S>(S value) { f(value, AccumulatorOf<S>{}); });
}

/// Checked arguments as kernels take them; owns what had to be made dense.
class DenseConv {
 public:
  explicit DenseConv(const ShortConvArguments& args)
      : args_(args),
        sequences_(args),
        drop_(args.drop),
        taps_(args),
        x_(args.x.contiguous()),
        logits_(dense_logits(args, taps_.get())),
        added_(accumulated_or_none(args.added())),
        bias_(accumulated_or_none(args.bias)) {
    if (args.initial_state)
      past_ = sequences_.spread_state(*args.initial_state);
    shape_ = {
        .batch = sequences_.count(),
        .steps = sequences_.steps(),
        .channels = x_.size(-1),
        .heads = logits_.size(-2),
        .kernel_size = logits_.size(-1),
        .padding_left = args.left().guard_int(__FILE__, __LINE__),
        .dilation = args.dilation};
  }

  const KernelTaps& taps() const { return taps_; }
  const SequenceValues& sequences() const { return sequences_; }
  const at::Tensor& logits() const { return logits_; }
  const at::Tensor& past() const { return past_; }

  /// Sets what forward and backward passes have in common.
  template <class S, class Pass>
  Pass pass() const {
    Pass pass;
    pass.shape = shape_;
    pass.softmax = taps_.softmax();
    pass.renormalize_edges = args_.renormalize_edges;
    pass.drop = drop_.get();
    pass.x = const_pointer<S>(x_);
    pass.logits = static_cast<decltype(pass.logits)>(logits_.const_data_ptr());
    pass.bias = const_pointer<AccumulatorOf<S>>(bias_);
    pass.lengths = sequences_.lengths();
    pass.offsets = sequences_.offsets();
    pass.added = added<S>();
    pass.past = const_pointer<S>(past_);
    pass.end = end();
    return pass;
  }

  template <class S>
  kernels::StaticTaps<const AccumulatorOf<S>> added() const {
    if (!added_.defined())
      return {};
    return {const_pointer<AccumulatorOf<S>>(added_), added_.size(0)};
  }
  kernels::ConvEnd end() const {
    return {parse_activation(args_.op, args_.activation), args_.residual};
  }

 private:
  const ShortConvArguments& args_;
  SequenceValues sequences_;
  DropValues drop_;
  KernelTaps taps_;
  at::Tensor x_, logits_, added_, bias_, past_;
  kernels::ConvShape shape_;
};

at::Tensor forward(const ShortConvArguments& args) {
  const DenseConv conv(args);
  const at::Tensor y = at::empty(args.x.sizes(), args.x.options());  // as x
  dispatch(args, conv.logits(), [&]<class S, class L>(S, L) {
    auto pass = conv.pass<S, ConvForward<S, L>>();
    pass.y = pointer<S>(y);
    if (args.dynamic) {
      kernels::dynamicconv_forward<S, L>(pass, cpu_execution());
      return;
    }
    if constexpr (std::is_same_v<L, AccumulatorOf<S>>)
      kernels::lightconv_forward<S>(pass, cpu_execution());
  });
  return y;
}

ShortConvGradients backward(
    const ShortConvArguments& args, const at::Tensor& grad, const ShortConvMask& wanted) {
  const DenseConv conv(args);
  const at::Tensor grad_y = grad.contiguous();
  auto [grad_x, grad_weight, grad_dynamic, grad_bias, grad_state] = empty_gradients(args, wanted);
  const bool wants_logits = args.dynamic ? wanted[2] : wanted[1];
  const bool wants_added = args.added().has_value() && wanted[1];
  const auto sums = at::TensorOptions(accumulator_type(args.x.scalar_type()));
  const at::Tensor grad_logits =
      empty_gradient(wants_logits, conv.logits().sym_sizes(), conv.logits().options());
  const at::Tensor added =
      wants_added ? at::empty(args.weight->sizes(), sums) : at::empty({0}, sums);
  const at::Tensor bias = at::empty({wanted[3] ? args.x.size(-1) : 0}, sums);
  const bool wants_state = args.initial_state.has_value() && wanted[4];
  const at::Tensor past = wants_state ? at::empty_like(conv.past()) : at::Tensor();
  if (wanted[0] || wanted[1] || wanted[2] || wanted[3] || wanted[4])
    dispatch(args, conv.logits(), [&]<class S, class L>(S, L) {
      auto pass = conv.pass<S, ConvBackward<S, L>>();
      pass.grad_y = const_pointer<S>(grad_y);
      pass.grad_x = pointer_if<S>(wanted[0], grad_x);
      pass.grad_logits = pointer_if<L>(wants_logits, grad_logits);
      pass.grad_bias = pointer_if<AccumulatorOf<S>>(wanted[3], bias);
      pass.grad_added = pointer_if<AccumulatorOf<S>>(wants_added, added);
      pass.grad_past = pointer_if<S>(wants_state, past);
      if (args.dynamic) {
        kernels::dynamicconv_backward<S, L>(pass, cpu_execution());
        return;
      }
      if constexpr (std::is_same_v<L, AccumulatorOf<S>>)
        kernels::lightconv_backward<S>(pass, cpu_execution());
    });
  if (wants_logits)
    (args.dynamic ? grad_dynamic : grad_weight) = conv.taps().grad_logits(grad_logits);
  if (wants_added)
    grad_weight = added.to(args.weight->scalar_type());
  if (wanted[3])
    grad_bias = bias;
  if (wants_state)
    grad_state = conv.sequences().gather_state(past);
  return {grad_x, grad_weight, grad_dynamic, grad_bias, grad_state};
}

/// Rows of a ring that a step goes on with, and their positions.
struct StepRows {
  at::Tensor rows;       ///< [N] or undefined
  at::Tensor positions;  ///< [M, 2], dense, or undefined: `position`
  int64_t position = 0;
};

at::Tensor step(const ShortConvArguments& args, at::Tensor& state, const StepRows& rows) {
  const DenseConv conv(args);
  const at::Tensor ring = state.contiguous();
  const at::Tensor y = at::empty(args.x.sizes(), args.x.options());  // [N, T', C]
  dispatch(args, conv.logits(), [&]<class S, class L>(S, L) {
    const auto pass = conv.pass<S, ConvForward<S, L>>();
    const ConvStep<S, L> step{
        .shape = pass.shape,
        .softmax = pass.softmax,
        .renormalize_edges = pass.renormalize_edges,
        .x = pass.x,
        .logits = pass.logits,
        .bias = pass.bias,
        .state = {.data = pointer<S>(ring), .slots = ring.size(1), .position = rows.position},
        .rows = const_pointer<int64_t>(rows.rows),
        .positions = const_pointer<int64_t>(rows.positions),
        .position_stride = 2,
        .lengths = pass.lengths,
        .added = pass.added,
        .end = pass.end,
        .y = pointer<S>(y)};
    if (args.dynamic) {
      kernels::dynamicconv_step<S, L>(step, cpu_execution());
      return;
    }
    if constexpr (std::is_same_v<L, AccumulatorOf<S>>)
      kernels::lightconv_step<S>(step, cpu_execution());
  });
  write_back(ring, state);
  return y;
}

/// Checks the values of state_indices: rows of the state, each once.
void check_rows(const at::Tensor& rows, int64_t count) {
  std::vector<bool> used(static_cast<size_t>(count));
  const auto* const row = rows.const_data_ptr<int64_t>();
  for (int64_t n = 0; n < rows.numel(); ++n) {
    SEQCONV_CHECK_OP(
        kShortConvStep,
        row[n] < count,
        "state_indices must be below M = {}, or negative for padding, but got {} at {}",
        count,
        row[n],
        n);
    if (row[n] < 0)
      continue;
    SEQCONV_CHECK_OP(
        kShortConvStep,
        !used[static_cast<size_t>(row[n])],
        "state_indices must name a row of the state once, but got {} again at {}",
        row[n],
        n);
    used[static_cast<size_t>(row[n])] = true;
  }
}

/// Checks the values of the positions of those rows: a ring is read and written where they say.
void check_seen(const StepRows& rows, int64_t count) {
  const auto* const seen = rows.positions.const_data_ptr<int64_t>();
  const auto* const row = const_pointer<int64_t>(rows.rows);
  for (int64_t n = 0; n < count; ++n) {
    const int64_t m = row == nullptr ? n : row[n];
    SEQCONV_CHECK_OP(
        kShortConvStep,
        m < 0 ||
            (seen[2 * m] >= 0 && seen[2 * m] <= seen[2 * m + 1] &&
             seen[2 * m + 1] < kEndOfPositions),
        "the state's positions must be inputs seen, at least 0, and the most there ever were, at "
        "least as many, but got {} and {} of row {}",
        seen[2 * m],
        seen[2 * m + 1],
        m);
  }
}

struct ShortConvCpu : ShortConvKind {
  static at::Tensor forward(const ShortConvArguments& args) {
    check(args);
    return ops::forward(args);
  }

  static ShortConvGradients backward(
      const ShortConvArguments& args, const at::Tensor& grad, const ShortConvMask& wanted) {
    check(args);
    check_gradient(args.op, grad, args.x);
    return ops::backward(args, grad, wanted);
  }

  static at::Tensor step(
      const ShortConvStepArguments& args, at::Tensor& ring, at::Tensor& positions) {
    check_short_conv_step(args, ring, positions);
    StepRows rows{.rows = dense_lengths(args.state_indices), .positions = positions.contiguous()};
    if (rows.rows.defined())
      check_rows(rows.rows, ring.size(0));
    check_seen(rows, args.x.size(0));
    const at::Tensor y = ops::step(args.whole(kShortConvStep), ring, rows);
    advance(args, rows);
    write_back(rows.positions, positions);
    return y;
  }

 private:
  /// Moves rows on by their real inputs.
  static void advance(const ShortConvStepArguments& args, const StepRows& rows) {
    auto* const at = rows.positions.mutable_data_ptr<int64_t>();
    const auto* const row = const_pointer<int64_t>(rows.rows);
    const at::Tensor lengths = dense_lengths(args.lengths);
    const auto* const length = const_pointer<int64_t>(lengths);
    for (int64_t n = 0; n < args.x.size(0); ++n) {
      const int64_t m = row == nullptr ? n : row[n];
      if (m < 0)
        continue;
      at[2 * m] += length == nullptr ? args.x.size(1) : length[n];
      at[2 * m + 1] = std::max(at[2 * m + 1], at[2 * m]);
    }
  }
};

/// lightconv and dynamicconv.
template <class Kind>
struct ConvCpu : Kind {
  static constexpr bool kDynamic = std::is_same_v<Kind, DynamicConvKind>;

  static at::Tensor forward(const ConvArguments& args) {
    check(args);
    const OptionalTensor logits = args.logits;
    return ops::forward(short_conv_of(args, logits));
  }

  static Gradients backward(
      const ConvArguments& args, const at::Tensor& grad, const GradientMask& wanted) {
    check_backward(args, grad);
    const OptionalTensor logits = args.logits;
    auto all = ops::backward(
        short_conv_of(args, logits),
        grad,
        {wanted[0], !kDynamic && wanted[1], kDynamic && wanted[1], wanted[2], false});
    const auto sums = args.x.options().dtype(accumulator_type(args.x.scalar_type()));
    return {
        std::get<0>(all),
        std::get < kDynamic ? 2 : 1 > (all),
        wanted[2] ? std::get<3>(all) : at::empty({0}, sums)};
  }

  static at::Tensor step(const ConvArguments& args, at::Tensor& state, const at::Tensor& position) {
    check_step(args, state, position);
    const OptionalTensor logits = args.logits;
    ShortConvArguments causal = short_conv_of(args, logits);
    causal.padding_left = std::nullopt;
    return ops::step(causal, state, {.position = position_value(args.op, position)});
  }

 private:
  static ShortConvArguments short_conv_of(const ConvArguments& args, const OptionalTensor& logits) {
    return {
        .op = args.op,
        .x = args.x,
        .weight = kDynamic ? kNoTensor : logits,
        .dynamic = kDynamic ? logits : kNoTensor,
        .bias = args.bias,
        .padding_left = args.padding_left,
        .normalization = args.normalization,
        .renormalize_edges = args.renormalize_edges,
        .drop = args.drop,
        .lengths = args.lengths};
  }
};

}  // namespace

TORCH_LIBRARY_IMPL(seqconv, CPU, m) {
  register_impl<ShortConvCpu>(m);
  register_impl<ConvCpu<LightConvKind>>(m);
  register_impl<ConvCpu<DynamicConvKind>>(m);
}

}  // namespace seqconv::ops
