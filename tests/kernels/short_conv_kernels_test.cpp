#include <gtest/gtest.h>

#include "kernels/plain_short_conv.h"
#include "support/draws.h"

/// Convolutions with all that short_conv has against loops of doubles, and their
/// steps against the whole.
namespace seqconv::internal::kernels {
namespace {

using testing::bound;
using testing::PlainShortConv;
using testing::relative_error;

class ShortConvKernels : public ::testing::TestWithParam<Isa>, protected internal::testing::Draws {
 protected:
  ShortConvKernels() : Draws(1) {}

  PlainShortConv drawn() {
    constexpr int64_t kWidths[] = {1, 2, 3, 4, 8, 16, 20, 64};
    constexpr int64_t kKernels[] = {1, 2, 3, 4, 5, 8, 9, 17, 40};
    PlainShortConv c;
    const int64_t R = kWidths[number(0, 7)], heads = number(1, R < 16 ? 9 : 2);
    c.shape = {
        .batch = number(1, 3),
        .steps = number(0, 5) == 0 ? number(60, 140) : number(0, 30),
        .channels = R * heads,
        .heads = coin() ? heads : 1,
        .kernel_size = kKernels[number(0, 8)],
        .dilation = coin() ? 1 : number(2, 5)};
    c.shape.padding_left = c.shape.kernel_size - 1;
    c.dynamic = coin();
    c.groups = c.dynamic && coin() ? 0 : coin() ? c.shape.channels : heads;
    if (!c.dynamic)
      c.shape.heads = c.groups;
    c.bias = coin();
    c.past = coin();
    c.end = {coin() ? ConvActivation::kSilu : ConvActivation::kNone, coin()};
    if (const int64_t rows = number(0, 2); rows == 0) {
      for (int64_t b = 0; b < c.shape.batch; ++b)
        c.lengths.push_back(number(0, c.shape.steps));
    } else if (rows == 1) {
      c.offsets = {0};
      for (int64_t b = 0; b < c.shape.batch; ++b)
        c.offsets.push_back(c.offsets.back() + number(0, c.shape.steps));
      c.shape.steps = c.offsets.back();
    }
    c.draw(random_);
    c.run();
    return c;
  }
};

INSTANTIATE_TEST_SUITE_P(
    Isas, ShortConvKernels, ::testing::ValuesIn(supported_isas()), testing::isa_name);

template <class S>
const S* pointer(const std::vector<S>& values) {
  return values.empty() ? nullptr : values.data();
}

/// A plain case in a storage type.
template <class S>
struct Stored {
  using A = AccumulatorOf<S>;
  const PlainShortConv& c;
  std::vector<S> x = testing::stored<S>(c.x), grad_y = testing::stored<S>(c.grad_y),
                 past = testing::stored<S>(c.before);
  std::vector<S> dynamic = testing::stored<S>(c.dynamic_taps);
  std::vector<A> taps = testing::stored<A>(c.static_taps), bias = testing::stored<A>(c.bias_values);

  template <class Pass>
  void set(Pass& pass) const {
    pass.shape = c.shape;
    pass.softmax = false;
    pass.x = x.data();
    pass.bias = pointer(bias);
    pass.lengths = pointer(c.lengths);
    pass.offsets = pointer(c.offsets);
    pass.past = pointer(past);
    pass.end = c.end;
    if (c.dynamic && c.groups > 0)
      pass.added = {taps.data(), c.groups};
  }
};

template <class S>
void expect_plain(const PlainShortConv& c, const Execution& run) {
  using A = AccumulatorOf<S>;
  const Stored<S> of{c};
  testing::Lines<S> y(of.x.size()), grad_x(of.x.size());
  std::vector<S> grad_past(of.past.size()), grad_dynamic(of.dynamic.size());
  std::vector<A> grad_taps(of.taps.size()), grad_bias(of.bias.size());
  const auto set_gradients = [&](auto& pass) {
    pass.grad_y = of.grad_y.data();
    pass.grad_x = grad_x.data();
    pass.grad_bias = c.bias ? grad_bias.data() : nullptr;
    pass.grad_past = c.past ? grad_past.data() : nullptr;
  };
  if (c.dynamic) {
    ConvForward<S, S> forward;
    of.set(forward);
    forward.logits = of.dynamic.data();
    forward.y = y.data();
    dynamicconv_forward(forward, run);
    ConvBackward<S, S> backward;
    of.set(backward);
    set_gradients(backward);
    backward.logits = of.dynamic.data();
    backward.grad_logits = grad_dynamic.data();
    backward.grad_added = c.groups > 0 ? grad_taps.data() : nullptr;
    dynamicconv_backward(backward, run);
  } else {
    ConvForward<S, A> forward;
    of.set(forward);
    forward.logits = of.taps.data();
    forward.y = y.data();
    lightconv_forward<S>(forward, run);
    ConvBackward<S, A> backward;
    of.set(backward);
    set_gradients(backward);
    backward.logits = of.taps.data();
    backward.grad_logits = grad_taps.data();
    lightconv_backward<S>(backward, run);
  }
  EXPECT_LE(relative_error(y, c.y), bound<S>()) << "y";
  EXPECT_LE(relative_error(grad_x, c.grad_x), bound<S>()) << "x";
  EXPECT_LE(relative_error(grad_past, c.grad_before), bound<S>()) << "past";
  EXPECT_LE(relative_error(grad_dynamic, c.grad_dynamic), bound<S>()) << "dynamic";
  EXPECT_LE(relative_error(grad_taps, c.grad_static), bound<S>()) << "static";
  EXPECT_LE(relative_error(grad_bias, c.grad_bias), bound<S>()) << "bias";
}

::testing::Message said(const PlainShortConv& c) {
  return ::testing::Message() << "B " << c.shape.batch << " T " << c.shape.steps << " C "
                              << c.shape.channels << " G " << c.groups << " H " << c.shape.heads
                              << " dynamic " << c.dynamic << " K " << c.shape.kernel_size << " D "
                              << c.shape.dilation << " bias " << c.bias << " past " << c.past
                              << " silu " << (c.end.activation == ConvActivation::kSilu)
                              << " residual " << c.end.residual << " lengths " << c.lengths.size()
                              << " offsets " << c.offsets.size();
}

TEST_P(ShortConvKernels, EqualLoopsOfDoubles) {
  for (int i = 0; i < 60; ++i) {
    const PlainShortConv c = drawn();
    SCOPED_TRACE(said(c));
    const Execution run{
        testing::in_chunks(3), GetParam(), i % 4 == 0 ? 1 : Execution{}.streams_from};
    if (i % 3 == 0)
      expect_plain<float>(c, run);
    else if (i % 3 == 1)
      expect_plain<double>(c, run);
    else
      expect_plain<BFloat16>(c, run);
  }
}

/// Streams of float in a ring with room to spare, from inputs before.
TEST_P(ShortConvKernels, StepsHaveTheBitsOfTheWhole) {
  const Execution run{testing::serial, GetParam()};
  for (int i = 0; i < 60; ++i) {
    PlainShortConv c = drawn();
    if (!c.offsets.empty())
      continue;
    SCOPED_TRACE(said(c));
    const Stored<float> of{c};
    const int64_t B = c.shape.batch, T = c.shape.steps, C = c.shape.channels, L = c.reach();
    const int64_t slots = L + number(0, 3), seen = c.past ? L : 0;
    std::vector<float> ring(testing::place((B + 1) * slots * C)), y(of.x.size()), whole(y);
    std::vector<int64_t> rows, positions(testing::place(B + 1), seen);
    for (int64_t b = 0; b < B; ++b) {
      rows.push_back(b + 1);
      if (c.past)
        std::copy_n(of.past.begin() + b * L * C, L * C, ring.begin() + (b + 1) * slots * C);
    }
    ConvStep<float, float> step{
        .shape = c.shape,
        .softmax = false,
        .x = of.x.data(),
        .logits = c.dynamic ? of.dynamic.data() : of.taps.data(),
        .bias = pointer(of.bias),
        .state = {ring.data(), slots, 0},
        .rows = rows.data(),
        .positions = positions.data(),
        .lengths = pointer(c.lengths),
        .end = c.end,
        .y = y.data()};
    ConvForward<float, float> forward;
    of.set(forward);
    step.added = forward.added;
    forward.logits = step.logits;
    forward.y = whole.data();
    if (c.dynamic) {
      dynamicconv_forward(forward, run);
      dynamicconv_step(step, run);
    } else {
      lightconv_forward<float>(forward, run);
      lightconv_step<float>(step, run);
    }
    EXPECT_EQ(y, whole);
    for (int64_t b = 0; b < B && T > 0; ++b)
      for (int64_t back = 1; back <= std::min(slots, c.real(b)); ++back) {
        const int64_t slot = (seen + c.real(b) - back) % slots;
        const float* const kept = ring.data() + ((b + 1) * slots + slot) * C;
        const float* const given = of.x.data() + (c.first(b) + c.real(b) - back) * C;
        EXPECT_TRUE(std::equal(kept, kept + C, given)) << "row " << b << " back " << back;
      }
  }
}

}  // namespace
}  // namespace seqconv::internal::kernels
