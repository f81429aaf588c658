#pragma once

#include <ATen/Functions.h>

#include "kernels/cuda/short_conv.h"
#include "libtorch/ops/conv_ops.h"
#include "libtorch/ops/cuda_storage.h"
#include "libtorch/ops/kept_elements.h"
#include "libtorch/ops/kernel_arguments.h"
#include "libtorch/ops/kernel_taps.h"
#include "libtorch/ops/short_conv_ops.h"

/// short_conv by the kernels of CUDA devices: as conv_cpu.cpp, but for what would need
/// values on the host. Sequences out of range are clamped.
namespace seqconv::ops {

/// Scales of DropConnect, float32 as the logits; undefined where nothing is dropped.
inline at::Tensor drop_scales(const DropConnect& drop, const at::Tensor& logits) {
  static const auto kept_elements = find_op<KeptElementsSignature>(kKeptElements);
  at::Tensor kept;
  if (drop.mask)
    kept = drop.mask->ne(0);
  else if (drop.seed && drop.p > 0)
    kept = kept_elements.call(*drop.seed, logits.sizes(), /*first=*/0, drop.p);
  return kept.defined() ? kept.to(at::kFloat).mul_(1 / (1 - drop.p)) : kept;
}

/// Checked arguments as kernels take them; owns what had to be made dense, normalised
/// or dropped.
class DeviceConv {
 public:
  explicit DeviceConv(const ShortConvArguments& args)
      : scales_(drop_scales(args.drop, args.logits())),
        normalized_(args, KernelTaps::Known::kTaps),
        taps_(scales_.defined() ? normalized_.get() * scales_ : normalized_.get()),
        x_(args.x.contiguous()),
        weight_(args.dynamic ? dense_or_none(args.weight) : taps_),
        bias_(dense_or_none(args.bias)),
        past_(dense_or_none(args.initial_state)),
        lengths_(dense_lengths(args.lengths)),
        offsets_(dense_lengths(args.cu_seqlens)),
        numbers_(dense_lengths(args.seq_idx)) {
    setup_.shape = {
        .batch = args.cu_seqlens ? 1 : x_.size(0),
        .steps = x_.size(-2),
        .channels = x_.size(-1),
        .heads = args.dynamic ? args.dynamic->size(-2) : 1,
        .kernel_size = taps_.size(-1),
        .padding_left = args.left().guard_int(__FILE__, __LINE__),
        .dilation = args.dilation};
    setup_.groups = args.weight ? args.weight->size(0) : 1;
    setup_.weight = beside(weight_);
    setup_.dynamic = beside(args.dynamic ? taps_ : at::Tensor());
    setup_.bias = beside(bias_);
    setup_.end = {parse_activation(args.op, args.activation), args.residual};
    setup_.lengths = const_pointer<int64_t>(lengths_);
    setup_.offsets = const_pointer<int64_t>(offsets_);
    setup_.sequences = args.cu_seqlens ? offsets_.numel() - 1 : 0;
    setup_.numbers = const_pointer<int64_t>(numbers_);
  }

  /// A pass but for its results and gradients.
  template <class Pass, class S>
  Pass pass(S) const {
    Pass pass;
    pass.setup = setup_;
    pass.x = const_pointer<S>(x_);
    if constexpr (requires { pass.past; })
      pass.past = const_pointer<S>(past_);
    return pass;
  }
  /// Taps of positions as the kernels read them, if there are such.
  const at::Tensor& taps() const { return taps_; }
  /// The gradient of the logits, of their type, from that of taps().
  at::Tensor grad_logits(const at::Tensor& grad) const {
    return normalized_.grad_logits(scales_.defined() ? grad * scales_ : grad);
  }
  at::Tensor room(int64_t bytes) const { return at::empty({bytes}, x_.options().dtype(at::kByte)); }

 private:
  static kernels::cuda::Beside beside(const at::Tensor& tensor) {
    if (!tensor.defined())
      return {};
    return {tensor.const_data_ptr(), storage_of(tensor.scalar_type())};
  }

  at::Tensor scales_;
  KernelTaps normalized_;
  at::Tensor taps_, x_, weight_, bias_, past_, lengths_, offsets_, numbers_;
  kernels::cuda::ShortConvSetup setup_;
};

/// Gradients as kernels write them; undefined: not wanted.
class DeviceSums {
 public:
  DeviceSums(const ShortConvArguments& args, const DeviceConv& conv, const ShortConvMask& wanted)
      : args_(args), conv_(conv) {
    const auto floats = args.x.options().dtype(at::kFloat);
    if (wanted[1] && args.weight)
      weight = at::empty(args.weight->sizes(), floats);
    if (wanted[2] && args.dynamic)
      dynamic = at::empty_like(conv.taps());
    if (wanted[3] && args.bias)
      bias = at::empty(args.bias->sizes(), floats);
  }

  /// Gives them the types of the arguments.
  void put_into(ShortConvGradients& grads) const {
    if (weight.defined())
      std::get<1>(grads) =
          args_.dynamic ? weight.to(args_.weight->scalar_type()) : conv_.grad_logits(weight);
    if (dynamic.defined())
      std::get<2>(grads) = conv_.grad_logits(dynamic);
    if (bias.defined())
      std::get<3>(grads) = bias.to(args_.bias->scalar_type());
  }

  at::Tensor weight;   ///< [G, K]
  at::Tensor dynamic;  ///< [B, T, H, K]
  at::Tensor bias;     ///< [C]

 private:
  const ShortConvArguments& args_;
  const DeviceConv& conv_;
};

/// The operator's entries. Runner says where kernels run:
///   using Guard = ...;  made of x's device
///   template <class Pass> static int64_t workspace(const Pass& pass);
///   template <class Pass> static void launch(const Pass& pass);
template <class Runner>
struct ShortConvDevice : ShortConvKind {
  static at::Tensor forward(const ShortConvArguments& args) {
    check(args);
    check_on_cuda(args);
    const typename Runner::Guard guard(args.x.device());
    const DeviceConv conv(args);
    const at::Tensor y = at::empty(args.x.sizes(), args.x.options());  // as x
    dispatch_cuda_storage(args.x.scalar_type(), [&]<class S>(S type) {
      auto pass = conv.pass<kernels::cuda::ShortConvForward<S>>(type);
      pass.y = pointer<S>(y);
      launch_in_room(conv, pass);
    });
    return y;
  }

  static ShortConvGradients backward(
      const ShortConvArguments& args, const at::Tensor& grad, const ShortConvMask& wanted) {
    check(args);
    check_on_cuda(args);
    check_gradient(args.op, grad, args.x);
    const typename Runner::Guard guard(args.x.device());
    auto grads = empty_gradients(args, {wanted[0], false, false, false, wanted[4]});
    if (wanted == ShortConvMask{})
      return grads;
    const DeviceConv conv(args);
    const DeviceSums sums(args, conv, wanted);
    const at::Tensor grad_y = grad.contiguous();
    dispatch_cuda_storage(args.x.scalar_type(), [&]<class S>(S type) {
      auto pass = conv.pass<kernels::cuda::ShortConvBackward<S>>(type);
      pass.grad_y = const_pointer<S>(grad_y);
      pass.grad_x = pointer_if<S>(wanted[0], std::get<0>(grads));
      pass.grad_weight = pointer_if<float>(sums.weight.defined(), sums.weight);
      pass.grad_dynamic = pointer_if<void>(sums.dynamic.defined(), sums.dynamic);
      pass.grad_bias = pointer_if<float>(sums.bias.defined(), sums.bias);
      pass.grad_past = pointer_if<S>(wanted[4] && args.initial_state, std::get<4>(grads));
      launch_in_room(conv, pass);
    });
    sums.put_into(grads);
    return grads;
  }

  static at::Tensor step(
      const ShortConvStepArguments& args, at::Tensor& ring, at::Tensor& positions) {
    check_short_conv_step(args, ring, positions);
    const ShortConvArguments whole = args.whole(kStep);
    check_on_cuda(whole);
    const typename Runner::Guard guard(args.x.device());
    const DeviceConv conv(whole);
    const at::Tensor dense = ring.contiguous(), seen = positions.contiguous();
    const at::Tensor rows = dense_lengths(args.state_indices);
    const at::Tensor y = at::empty(args.x.sizes(), args.x.options());  // [N, T', C]
    dispatch_cuda_storage(args.x.scalar_type(), [&]<class S>(S type) {
      auto pass = conv.pass<kernels::cuda::ShortConvStep<S>>(type);
      pass.ring = pointer<S>(dense);
      pass.slots = dense.size(1);
      pass.positions = pointer<int64_t>(seen);
      pass.rows = const_pointer<int64_t>(rows);
      pass.ring_rows = dense.size(0);
      pass.y = pointer<S>(y);
      Runner::launch(pass);
    });
    write_back(dense, ring);
    write_back(seen, positions);
    return y;
  }

  /// Takes back as many of the last counts[m] inputs of each row as its state can.
  static void rollback(at::Tensor& positions, const at::Tensor& counts, int64_t further) {
    check_counts(kShortConvRollback, positions, counts);
    const at::Tensor seen = positions.select(1, 0), most_ever = positions.select(1, 1);  // [M]
    const at::Tensor most = at::minimum(seen, seen - most_ever + further).clamp_min(0);
    seen.sub_(at::minimum(counts.to(at::kLong).clamp_min(0), most));
  }

 private:
  template <class Pass>
  static void launch_in_room(const DeviceConv& conv, Pass& pass) {
    const at::Tensor room = conv.room(Runner::workspace(pass));
    pass.workspace = room.mutable_data_ptr();
    Runner::launch(pass);
  }
};

}  // namespace seqconv::ops
