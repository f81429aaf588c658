#include "libtorch/ops/elementwise.h"

#include "libtorch/ops/fused_support.h"

namespace seqconv::ops {
using namespace internal;
namespace {

using namespace testing;

double tolerance(at::ScalarType type) {
  return type == at::kDouble ? 1e-12 : 2e-6;
}

const std::vector<at::ScalarType> kTypes = {at::kFloat, at::kDouble};
const std::vector<std::vector<int64_t>> kShapes = {
    {0, 4}, {1, 1}, {3, 5}, {2, 3, 7}, {5, 64}, {3, 11, 130}, {9, 513}};

TEST(DropoutOp, EqualsTheMaskOfRandomWords) {
  for (const auto type : kTypes)
    for (const auto& shape : kShapes)
      expect_same(
          [](const Inputs& in) { return ops::dropout(in[0], 0.3, 11); },
          [](const Inputs& in) { return plain_dropout(in[0], 0.3, 11); },
          {random_normal(shape, type)},
          tolerance(type));
}

TEST(DropoutOp, ReturnsItsInputWhenNothingIsDropped) {
  const at::Tensor x = random_normal({4, 5}, at::kFloat);
  EXPECT_TRUE(ops::dropout(x, 0, 1).is_same(x));
}

TEST(DropoutOp, KeepsTheShareItPromises) {
  const int64_t n = 1 << 20;
  for (const double p : {0.1, 0.5, 0.9}) {
    const at::Tensor y = ops::dropout(at::ones({n}), p, 123);
    const double kept = y.ne(0).sum().item<double>() / n;
    // Five standard deviations of a binomial share.
    EXPECT_NEAR(kept, 1 - p, 5 * std::sqrt(p * (1 - p) / n));
    EXPECT_NEAR(y.max().item<double>(), 1 / (1 - p), 1e-6 / (1 - p));
  }
}

TEST(DropoutOp, ReadsStridedInputsInTheirLogicalOrder) {
  const at::Tensor x = random_normal({7, 9}, at::kDouble).t();
  EXPECT_LE(error(ops::dropout(x, 0.4, 5), plain_dropout(x, 0.4, 5)), 1e-15);
}

TEST(DropoutOp, SeedsGiveDifferentMasks) {
  const at::Tensor x = at::ones({1000});
  EXPECT_TRUE(at::equal(ops::dropout(x, 0.5, 1), ops::dropout(x, 0.5, 1)));
  EXPECT_FALSE(at::equal(ops::dropout(x, 0.5, 1), ops::dropout(x, 0.5, 2)));
  const uint64_t large = 0xfedcba9876543210ULL;
  EXPECT_TRUE(at::equal(ops::dropout(x, 0.5, large), plain_dropout(x, 0.5, large)));
}

TEST(DropoutOp, SaysWhatIsWrong) {
  const at::Tensor x = at::ones({3});
  expect_error([&] { ops::dropout(x, 1.0, 1); }, "[dropout] p must be in [0, 1), but got 1");
  expect_error([&] { ops::dropout(x, std::nan(""), 1); }, "[dropout] p must be in [0, 1)");
  expect_error(
      [&] { ops::dropout(x.to(at::kLong), 0.5, 1); },
      "[dropout] x must be of a floating-point type, but got Long");
  expect_error(
      [&] { ops::dropout(at::Tensor(), 0.5, 1); },
      "[dropout] x must be of a floating-point type, but got an undefined tensor");
}

/// Each operation beside its plain tensor algebra, which devices run.
struct OperationAndReference {
  Call kernel, reference;
};

std::vector<OperationAndReference> operations(double p, uint64_t seed) {
  const at::Tensor lengths = at::tensor({11, 4, 0}, at::kLong);
  std::vector<OperationAndReference> all = {
      {[=](const Inputs& in) { return ops::dropout(in[0], p, seed); },
       [=](const Inputs& in) { return dropout_reference(in[0], p, seed); }},
      {[=](const Inputs& in) { return ops::glu(in[0], lengths); },
       [=](const Inputs& in) { return glu_reference(in[0], lengths); }},
      {[=](const Inputs& in) { return ops::layer_norm(in[0], in[1], in[2], 1e-3); },
       [=](const Inputs& in) { return layer_norm_reference(in[0], in[1], in[2], 1e-3); }}};
  for (const auto activation : {Activation::kRelu, Activation::kSwish})
    all.push_back(
        {[=](const Inputs& in) { return ops::activation_dropout(in[0], activation, p, seed); },
         [=](const Inputs& in) {
           return activation_dropout_reference(in[0], activation, p, seed);
         }});
  return all;
}

TEST(ElementwiseReferences, EqualTheKernels) {
  const uint64_t seed = 0xfedcba9876543210ULL;
  for (const auto type : kTypes)
    for (const auto& operation : operations(0.3, seed))
      expect_same(
          operation.kernel,
          operation.reference,
          {random_normal({3, 11, 22}, type), random_normal({22}, type), random_normal({22}, type)},
          tolerance(type));
}

// What other types and devices do is the reference: here in float16, of which
// every result is float32's, rounded.
TEST(ElementwiseReferences, AreWhatOtherTypesRun) {
  const at::Tensor x = random_normal({3, 11, 22}, at::kHalf);
  const at::Tensor w = at::ones({22}, at::kHalf);
  for (const auto& operation : operations(0.5, 7)) {
    const at::Tensor y = operation.kernel({x, w, w});
    EXPECT_EQ(y.scalar_type(), at::kHalf);
    EXPECT_TRUE(y.equal(operation.reference({x, w, w})));
    const at::Tensor wide = x.to(at::kFloat);
    const at::Tensor one = w.to(at::kFloat);
    EXPECT_LE(error(y, operation.kernel({wide, one, one})), 0x1p-8);
  }
  EXPECT_TRUE(at::equal(dropout_add(x, x, 0.5, 7), x + dropout_reference(x, 0.5, 7)));
  EXPECT_LE(
      error(
          dropout_add_layer_norm(x, x, w, w, 0.5, 7),
          layer_norm_reference(x + dropout_reference(x, 0.5, 7), w, w)),
      0x1p-7);
}

// Parameters are float32, as in mixed precision, or of the same 16 bits.
TEST(ElementwiseKernels, RoundToBFloat16WhatTheyComputeInFloat32) {
  std::vector<Call> calls;
  for (const auto& operation : operations(0.5, 7))
    calls.push_back(operation.kernel);
  calls.push_back([](const Inputs& in) { return dropout_add(in[0], in[0] * 2, 0.5, 7); });
  calls.push_back([](const Inputs& in) {
    return dropout_add_layer_norm(in[0], in[0] * 2, in[1], in[2], 0.5, 7);
  });
  const at::Tensor x = random_normal({3, 11, 22}, at::kBFloat16);
  const at::Tensor w = random_normal({22}, at::kBFloat16);
  const at::Tensor wide = w.to(at::kFloat);
  for (const Call& call : calls) {
    const auto want = with_gradients(call, {x.to(at::kFloat), wide, wide});
    for (const at::Tensor& parameter : {wide, w}) {
      const auto got = with_gradients(call, {x, parameter, parameter});
      for (size_t i = 0; i < got.size(); ++i) {
        ASSERT_EQ(got[i].defined(), want[i].defined());
        if (!got[i].defined())
          continue;
        EXPECT_LE(error(got[i], want[i]), 0x1p-6) << i;
        EXPECT_EQ(got[i].scalar_type(), i > 1 ? parameter.scalar_type() : at::kBFloat16);
      }
    }
  }
}

// A batch of five rows that was split after the second one.
TEST(ElementwiseReferences, DropTheSameElementsOfPartsOfABatch) {
  const at::Tensor x = random_normal({5, 3, 7}, at::kDouble);
  Seed first = 42, second = 42;
  first.rows = 2;
  second.rows = 3;
  second.rows_before = 2;
  const at::Tensor whole = ops::dropout(x, 0.4, 42);
  EXPECT_LE(error(ops::dropout(x.narrow(0, 0, 2), 0.4, first), whole.narrow(0, 0, 2)), 1e-15);
  EXPECT_LE(error(ops::dropout(x.narrow(0, 2, 3), 0.4, second), whole.narrow(0, 2, 3)), 1e-15);
}

TEST(DropoutOp, RefusesASecondDerivative) {
  const at::Tensor x = at::ones({3}).requires_grad_();
  const at::Tensor y = ops::dropout(x, 0.5, 1).square().sum();
  expect_error(
      [&] {
        torch::autograd::grad(
            {y},
            {x},
            {},
            /*retain_graph=*/true,
            /*create_graph=*/true);
      },
      "[dropout] has a first derivative only, but got create_graph = true");
}

TEST(DropoutAddOp, MatchesPlainAlgebra) {
  for (const auto type : kTypes)
    for (const double p : {0.0, 0.25})
      for (const auto& shape : kShapes)
        expect_same(
            [&](const Inputs& in) { return dropout_add(in[0], in[1], p, 3); },
            [&](const Inputs& in) { return in[1] + plain_dropout(in[0], p, 3); },
            {random_normal(shape, type), random_normal(shape, type)},
            tolerance(type));
}

TEST(DropoutAddOp, SaysWhatIsWrong) {
  expect_error(
      [] {
        dropout_add(at::ones({2, 3}), at::ones({3}), 0.1, 1);
      },
      "[dropout_add] residual must have the shape of x [2, 3], but got [3]");
  expect_error(
      [] { dropout_add(at::ones({2}), at::ones({2}, at::kDouble), 0.1, 1); },
      "[dropout_add] residual must be Float like the other inputs, but got Double");
}

TEST(GluOp, MatchesATen) {
  for (const auto type : kTypes)
    for (const int64_t C : {1, 3, 16, 65})
      expect_same(
          [](const Inputs& in) { return ops::glu(in[0]); },
          [](const Inputs& in) { return at::glu(in[0], -1); },
          {random_normal({2, 7, 2 * C}, type) * 3},
          tolerance(type));
}

TEST(GluOp, ZeroesPaddingInOutputAndGradient) {
  const at::Tensor lengths = at::tensor({3, 0, 5}, at::kLong);
  const at::Tensor valid = at::arange(5).unsqueeze(0) < lengths.unsqueeze(1);
  // Padding may hold anything, NaN too.
  at::Tensor x = random_normal({3, 5, 14}, at::kDouble);
  const at::Tensor poisoned = at::where(valid.unsqueeze(-1), x, at::full_like(x, std::nan("")));
  const auto got =
      with_gradients([&](const Inputs& in) { return ops::glu(in[0], lengths); }, {poisoned});
  const auto want = with_gradients(
      [&](const Inputs& in) { return at::glu(in[0], -1) * valid.unsqueeze(-1); }, {x});
  EXPECT_LE(error(got[0], want[0]), 1e-14);
  EXPECT_LE(error(got[1], want[1]), 1e-14);
}

TEST(GluOp, SaysWhatIsWrong) {
  expect_error(
      [] {
        ops::glu(at::ones({2, 3}));
      },
      "[glu] the last axis of x must be even, but got x [2, 3]");
  expect_error(
      [] {
        ops::glu(at::ones({2, 4}), at::ones({2}, at::kLong));
      },
      "[glu] x must be [B, T, 2C] when lengths are given, but got [2, 4]");
  expect_error(
      [] {
        ops::glu(at::ones({2, 3, 4}), at::ones({3}, at::kLong));
      },
      "[glu] lengths must be int64 or int32 [B] on cpu with B = 2, but got Long [3] on cpu");
  expect_error(
      [] {
        ops::glu(at::ones({2, 3, 4}), at::full({2}, 4, at::kLong));
      },
      "[glu] lengths must be in [0, T = 3], but got 4");
}

TEST(ActivationDropoutOp, MatchesPlainAlgebra) {
  for (const auto type : kTypes)
    for (const double p : {0.0, 0.25})
      for (const auto& shape : kShapes) {
        expect_same(
            [&](const Inputs& in) { return activation_dropout(in[0], Activation::kRelu, p, 8); },
            [&](const Inputs& in) { return plain_dropout(at::relu(in[0]), p, 8); },
            {random_normal(shape, type)},
            tolerance(type));
        expect_same(
            [&](const Inputs& in) { return activation_dropout(in[0], Activation::kSwish, p, 8); },
            [&](const Inputs& in) { return plain_dropout(in[0] * in[0].sigmoid(), p, 8); },
            {random_normal(shape, type)},
            tolerance(type));
      }
}

TEST(ElementwiseOps, GradientsAreNumericalDerivatives) {
  const at::Tensor x = random_normal({2, 3, 6}, at::kDouble);
  const at::Tensor residual = random_normal({2, 3, 6}, at::kDouble);
  const at::Tensor lengths = at::tensor({3, 1}, at::kLong);
  expect_numerical_gradients([](const Inputs& in) { return ops::dropout(in[0], 0.3, 2); }, {x});
  expect_numerical_gradients(
      [](const Inputs& in) { return dropout_add(in[0], in[1], 0.3, 2); }, {x, residual});
  expect_numerical_gradients([&](const Inputs& in) { return ops::glu(in[0], lengths); }, {x});
  for (const Activation activation : {Activation::kRelu, Activation::kSwish})
    expect_numerical_gradients(
        [&](const Inputs& in) { return activation_dropout(in[0], activation, 0.3, 2); }, {x});
}

TEST(ElementwiseOps, ResultsDoNotDependOnTheNumberOfThreads) {
  const at::Tensor x = random_normal({300, 514}, at::kFloat);
  const at::Tensor residual = random_normal({300, 514}, at::kFloat);
  const std::vector<Call> calls = {
      [](const Inputs& in) { return ops::dropout(in[0], 0.3, 2); },
      [](const Inputs& in) { return dropout_add(in[0], in[1], 0.3, 2); },
      [](const Inputs& in) { return ops::glu(in[0]); },
      [](const Inputs& in) { return activation_dropout(in[0], Activation::kSwish, 0.3, 2); }};
  for (size_t k = 0; k < calls.size(); ++k) {
    const Inputs inputs = k == 1 ? Inputs{x, residual} : Inputs{x};
    std::vector<at::Tensor> want;
    for (const int threads : {1, 2, 3, 4}) {
      const ThreadCount guard(threads);
      const auto got = with_gradients(calls[k], inputs);
      if (want.empty())
        want = got;
      for (size_t i = 0; i < got.size(); ++i)
        EXPECT_TRUE(at::equal(got[i], want[i])) << k << ", " << threads;
    }
  }
}

}  // namespace
}  // namespace seqconv::ops
