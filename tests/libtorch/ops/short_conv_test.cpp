#include <gtest/gtest.h>

#include "base/error.h"
#include "libtorch/ops/short_conv_case.h"
#include "support/gradients.h"
#include "support/tolerances.h"

/// short_conv against its definition, with options that are drawn.
namespace seqconv::ops {
using namespace internal;
namespace {

using testing::differentiate;
using testing::Differentiated;
using testing::relative_error;
using testing::tolerance;

/// The operator in every type against the definition in float64 on the same numbers.
void expect_definition(const ShortConvCase& c) {
  const auto exact = c.inputs();
  const at::Tensor grad = exact[0].flip({-1});
  const Differentiated want = differentiate(
      [&](const auto& in) { return short_conv_reference(in[0], c.with(in)); }, exact, grad);
  for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16}) {
    SCOPED_TRACE(::testing::Message() << c << " " << c10::toString(type));
    std::vector<at::Tensor> rounded;
    for (const at::Tensor& input : exact)
      rounded.push_back(input.defined() ? input.to(type) : input);
    const Differentiated got = differentiate(
        [&](const auto& in) { return short_conv(in[0], c.with(in)); }, rounded, grad.to(type));
    EXPECT_EQ(got.y.scalar_type(), type);
    EXPECT_LE(relative_error(got.y, want.y), tolerance(type)) << "y";
    for (size_t i = 0; i < got.grads.size(); ++i)
      EXPECT_LE(relative_error(got.grads[i], want.grads[i]), tolerance(type)) << "gradient " << i;
  }
}

TEST(ShortConv, EqualsItsDefinition) {
  at::manual_seed(1);
  ShortConvCases cases(1);
  for (int i = 0; i < 80; ++i)
    expect_definition(cases.draw());
}

TEST(ShortConv, HasNumericalGradients) {
  at::manual_seed(2);
  ShortConvCases cases(2);
  for (int i = 0; i < 25; ++i) {
    ShortConvCase c = cases.draw();
    c.steps = std::min<int64_t>(c.steps, 9);
    c.batch = 1;
    c.channels = std::min<int64_t>(c.channels, 4);
    c.groups = std::min<int64_t>(c.groups, 1);
    c.heads = std::min<int64_t>(c.heads, 1);
    c.rows = ShortConvCase::Rows::kAll;
    c.kernel_size = std::min<int64_t>(c.kernel_size, 5);
    c.options.padding_left.reset();
    c.options.lengths.reset();
    c.options.cu_seqlens.reset();
    c.options.seq_idx.reset();
    SCOPED_TRACE(::testing::Message() << c);
    testing::expect_numerical_gradients(
        [&](const auto& in) { return short_conv(in[0], c.with(in)); }, c.inputs());
  }
}

TEST(ShortConv, HasASecondDerivative) {
  at::manual_seed(6);
  ShortConvCases cases(6);
  for (int i = 0; i < 12; ++i) {
    ShortConvCase c = cases.draw();
    c.batch = 1;
    c.steps = std::min<int64_t>(c.steps, 5);
    c.channels = 2;
    c.groups = std::min<int64_t>(c.groups, 1);
    c.heads = std::min<int64_t>(c.heads, 2);
    c.rows = ShortConvCase::Rows::kAll;
    c.kernel_size = std::min<int64_t>(c.kernel_size, 3);
    c.options.padding_left.reset();
    c.options.lengths.reset();
    c.options.cu_seqlens.reset();
    c.options.seq_idx.reset();
    SCOPED_TRACE(::testing::Message() << c);
    testing::expect_numerical_second_gradients(
        [&](const auto& in) { return short_conv(in[0], c.with(in)); }, c.inputs());
  }
}

// lightconv and dynamicconv are it with a softmax.
TEST(ShortConv, IsMadeOfAnyWidth) {
  at::manual_seed(3);
  for (const int64_t K : {128, 257, 512})
    for (const int64_t H : {0, 1, 6})
      expect_definition(
          {.batch = 1,
           .steps = 600,
           .channels = 6,
           .groups = H == 1 ? 0 : 3,
           .heads = H,
           .kernel_size = K,
           .state = H == 6});
}

TEST(ShortConv, AGradientThatIsNotWantedDoesNotChangeTheOthers) {
  at::manual_seed(4);
  ShortConvCases cases(4);
  for (int i = 0; i < 30; ++i) {
    const ShortConvCase c = cases.draw();
    SCOPED_TRACE(::testing::Message() << c);
    const auto all = testing::leaves(c.inputs());
    const at::Tensor grad = all[0].detach().flip({-1});
    const auto gradients = [&](const std::vector<at::Tensor>& asked) {
      return torch::autograd::grad({short_conv(all[0], c.with(all))}, asked, {grad});
    };
    std::vector<at::Tensor> there;
    for (const at::Tensor& input : all)
      if (input.defined())
        there.push_back(input);
    const auto want = gradients(there);
    for (size_t j = 0; j < there.size(); ++j) {
      std::vector<at::Tensor> alone = all;
      for (at::Tensor& input : alone)
        if (input.defined() && !input.is_same(there[j]))
          input = input.detach();
      const at::Tensor y = short_conv(alone[0], c.with(alone));
      EXPECT_TRUE(at::equal(torch::autograd::grad({y}, {there[j]}, {grad})[0], want[j])) << j;
    }
  }
}

/// Bytes from a function that gets the number of threads.
TEST(ShortConv, HasTheSameBitsForAnyNumberOfThreads) {
  at::manual_seed(5);
  ShortConvCases cases(5);
  const int threads = at::get_num_threads();
  for (int i = 0; i < 30; ++i) {
    const ShortConvCase c = cases.draw();
    SCOPED_TRACE(::testing::Message() << c);
    std::vector<at::Tensor> rounded;
    for (const at::Tensor& input : c.inputs())
      rounded.push_back(input.defined() ? input.to(at::kFloat) : input);
    const auto run = [&](int count) {
      at::set_num_threads(count);
      return differentiate(
          [&](const auto& in) { return short_conv(in[0], c.with(in)); },
          rounded,
          rounded[0].flip({-1}));
    };
    const Differentiated one = run(1);
    for (const int count : {2, 5}) {
      const Differentiated many = run(count);
      EXPECT_TRUE(at::equal(many.y, one.y));
      for (size_t j = 0; j < one.grads.size(); ++j)
        EXPECT_TRUE(at::equal(many.grads[j], one.grads[j])) << j;
    }
  }
  at::set_num_threads(threads);
}

}  // namespace
}  // namespace seqconv::ops
