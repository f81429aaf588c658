#include "op_cases.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <memory>

#include "base/error.h"
#include "kernels/conv.h"
#include "kernels/talk.h"
#include "libtorch/ops/parallel.h"
#include "seqconv/ops/dynamicconv.h"
#include "seqconv/ops/lightconv.h"
#include "seqconv/ops/talk.h"

namespace seqconv::bench {
using namespace internal;
namespace {

using kernels::AccumulatorOf;
using kernels::BFloat16;
using kernels::Execution;

constexpr int64_t kDropSeed = 1;

at::ScalarType type_of(Storage storage) {
  return storage == Storage::kFloat32 ? at::kFloat : at::kBFloat16;
}

/// The tensors of a case; calls keep them alive.
struct Tensors {
  at::Tensor x, logits, right, grad_y;            // inputs
  at::Tensor y, grad_x, grad_logits, grad_right;  // outputs
};

/// Offsets whose edges are exact in float32: where one falls between rows in
/// float64 alone, the reference has a gradient that the kernel has not.
at::Tensor exact_offsets(at::IntArrayRef size) {
  return at::rand(size).mul(1024).floor().div(1024);
}

std::shared_ptr<Tensors> make_tensors(const OpShape& s) {
  at::manual_seed(1);
  const auto options = at::TensorOptions(type_of(s.storage));
  const int64_t H = s.heads(), K = s.kernel_size;
  const std::vector<int64_t> size = {s.batch, s.steps, s.channels};
  auto t = std::make_shared<Tensors>();
  t->x = at::randn(size, options);
  t->grad_y = at::randn(size, options);
  t->y = at::zeros(size, options);
  t->grad_x = at::zeros(size, options);
  switch (s.op) {
    case Op::kLightConv:
      t->logits = at::randn({H, K});
      break;
    case Op::kDynamicConv:
      t->logits = at::randn({s.batch, s.steps, H, K}, options);
      break;
    case Op::kTalk:
      t->logits = exact_offsets({s.batch, s.steps, H}).to(options.dtype());
      t->right = exact_offsets({s.batch, s.steps, H}).to(options.dtype());
      t->grad_right = at::zeros_like(t->right);
      break;
  }
  t->grad_logits = at::zeros_like(t->logits);
  return t;
}

template <class S>
S* data(const at::Tensor& tensor) {
  return static_cast<S*>(tensor.mutable_data_ptr());
}

Execution execution(const OpShape& s) {
  return {.parallel_for = ops::parallel_for(), .isa = s.isa};
}

template <class S, class L>
void set_conv_calls(const OpShape& s, const std::shared_ptr<Tensors>& t, OpCase& out) {
  const kernels::ConvShape shape{
      .batch = s.batch,
      .steps = s.steps,
      .channels = s.channels,
      .heads = s.heads(),
      .kernel_size = s.kernel_size,
      .padding_left = s.kernel_size / 2};
  const kernels::TapDrop drop{.p = s.drop, .seeded = s.drop > 0, .seed = kDropSeed};
  const kernels::ConvForward<S, L> forward{
      .shape = shape,
      .drop = drop,
      .x = data<S>(t->x),
      .logits = data<L>(t->logits),
      .y = data<S>(t->y)};
  const kernels::ConvBackward<S, L> backward{
      .shape = shape,
      .drop = drop,
      .x = data<S>(t->x),
      .logits = data<L>(t->logits),
      .grad_y = data<S>(t->grad_y),
      .grad_x = data<S>(t->grad_x),
      .grad_logits = data<L>(t->grad_logits)};
  out.forward = [=, keep = t] {
    if constexpr (std::is_same_v<L, AccumulatorOf<S>>)
      if (s.op == Op::kLightConv)
        return kernels::lightconv_forward<S>(forward, execution(s));
    if constexpr (std::is_same_v<L, S>)
      kernels::dynamicconv_forward(forward, execution(s));
  };
  out.backward = [=, keep = t] {
    if constexpr (std::is_same_v<L, AccumulatorOf<S>>)
      if (s.op == Op::kLightConv)
        return kernels::lightconv_backward<S>(backward, execution(s));
    if constexpr (std::is_same_v<L, S>)
      kernels::dynamicconv_backward(backward, execution(s));
  };
}

template <class S>
void set_talk_calls(const OpShape& s, const std::shared_ptr<Tensors>& t, OpCase& out) {
  const kernels::TalkShape shape{
      .batch = s.batch,
      .steps = s.steps,
      .channels = s.channels,
      .heads = s.heads(),
      .max_left = s.kernel_size,
      .max_right = s.kernel_size};
  out.forward = [=] {
    kernels::talk_forward(
        kernels::TalkForward<S, S>{
            .shape = shape,
            .x = data<S>(t->x),
            .offset_left = data<S>(t->logits),
            .offset_right = data<S>(t->right),
            .y = data<S>(t->y)},
        execution(s));
  };
  out.backward = [=] {
    kernels::talk_backward(
        kernels::TalkBackward<S, S>{
            .shape = shape,
            .x = data<S>(t->x),
            .offset_left = data<S>(t->logits),
            .offset_right = data<S>(t->right),
            .grad_y = data<S>(t->grad_y),
            .grad_x = data<S>(t->grad_x),
            .grad_offset_left = data<S>(t->grad_logits),
            .grad_offset_right = data<S>(t->grad_right)},
        execution(s));
  };
}

/// A token's share of the least work of both passes.
void set_work(const OpShape& s, OpCase& out) {
  const double C = double(s.channels), H = double(s.heads());
  const double K = double(s.kernel_size);
  const double size = s.storage == Storage::kFloat32 ? 4 : 2;
  switch (s.op) {
    case Op::kLightConv:
      out.forward_work = {2 * C * size, 2 * C * K};
      out.backward_work = {3 * C * size, 4 * C * K};
      break;
    case Op::kDynamicConv:
      out.forward_work = {(2 * C + H * K) * size, 2 * C * K + 5 * H * K};
      out.backward_work = {(3 * C + 2 * H * K) * size, 4 * C * K + 8 * H * K};
      break;
    case Op::kTalk:
      out.forward_work = {(2 * C + 2 * H) * size, 6 * C};
      out.backward_work = {(3 * C + 4 * H) * size, 14 * C};
      break;
  }
  for (Work* work : {&out.forward_work, &out.backward_work}) {
    work->bytes *= s.tokens();
    work->flops *= s.tokens();
  }
}

double distance(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor want = b.to(at::kDouble);
  const double scale = want.abs().max().item<double>();
  const double max = (a.to(at::kDouble) - want).abs().max().item<double>();
  // A single tap has a gradient of zero.
  return scale > 0 ? max / scale : max;
}

at::Tensor call(const OpShape& s, const std::vector<at::Tensor>& in, bool slow) {
  const int64_t K = s.kernel_size;
  ops::DropConnect drop{.p = s.drop};
  if (s.drop > 0)
    drop.seed = at::tensor(kDropSeed);
  const ops::ConvOptions options{.padding_left = K / 2, .drop = drop};
  switch (s.op) {
    case Op::kLightConv:
      return slow ? ops::lightconv_reference(in[0], in[1], options)
                  : ops::lightconv(in[0], in[1], options);
    case Op::kDynamicConv:
      return slow ? ops::dynamicconv_reference(in[0], in[1], options)
                  : ops::dynamicconv(in[0], in[1], options);
    case Op::kTalk: {
      const ops::TalkOptions windows{.max_left = K, .max_right = K};
      return slow ? ops::talk_reference(in[0], in[1], in[2], windows)
                  : ops::talk(in[0], in[1], in[2], windows);
    }
  }
  fail("unknown operator");
}

/// Output and gradients, computed in `type`.
std::vector<at::Tensor> results(
    const OpShape& s, const Tensors& t, bool slow, at::ScalarType type) {
  std::vector<at::Tensor> in = {t.x, t.logits};
  if (t.right.defined())
    in.push_back(t.right);
  for (at::Tensor& tensor : in)
    tensor = tensor.to(type).detach().clone().requires_grad_(true);
  const at::Tensor y = call(s, in, slow);
  auto all = torch::autograd::grad({y}, in, {t.grad_y.to(y.scalar_type())});
  all.insert(all.begin(), y.detach());
  return all;
}

}  // namespace

std::string op_name(Op op) {
  switch (op) {
    case Op::kLightConv:
      return "lightconv";
    case Op::kDynamicConv:
      return "dynamicconv";
    case Op::kTalk:
      return "talk";
  }
  fail("unknown operator");
}

std::string storage_name(Storage storage) {
  return storage == Storage::kFloat32 ? "float32" : "bfloat16";
}

OpCase make_case(const OpShape& shape) {
  OpCase out;
  set_work(shape, out);
  const auto tensors = make_tensors(shape);
  const bool wide = shape.storage == Storage::kFloat32;
  if (shape.op == Op::kTalk)
    wide ? set_talk_calls<float>(shape, tensors, out)
         : set_talk_calls<BFloat16>(shape, tensors, out);
  else if (wide)
    set_conv_calls<float, float>(shape, tensors, out);
  else if (shape.op == Op::kLightConv)
    set_conv_calls<BFloat16, float>(shape, tensors, out);
  else
    set_conv_calls<BFloat16, BFloat16>(shape, tensors, out);
  return out;
}

void check_case(const OpShape& shape) {
  OpShape one = shape;
  one.batch = 1;
  const auto tensors = make_tensors(one);
  const auto got = results(one, *tensors, /*slow=*/false, type_of(one.storage));
  const auto want = results(one, *tensors, /*slow=*/true, at::kDouble);
  const double bound = shape.storage == Storage::kFloat32 ? 1e-5 : 1e-2;
  for (size_t i = 0; i < want.size(); ++i) {
    const double off = distance(got[i], want[i]);
    SEQCONV_CHECK(
        off <= bound,
        op_name(shape.op),
        " K = ",
        shape.kernel_size,
        " T = ",
        shape.steps,
        " C = ",
        shape.channels,
        ": result ",
        i,
        " must equal the reference to ",
        bound,
        ", but is off by ",
        off);
  }
}

}  // namespace seqconv::bench
