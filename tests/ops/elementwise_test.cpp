#include "seqconv/ops/elementwise.h"

#include "ops/fused_support.h"

namespace seqconv::ops {
namespace {

using namespace testing;

double tolerance(at::ScalarType type) {
  return type == at::kDouble ? 1e-12 : 2e-6;
}

const std::vector<at::ScalarType> kTypes = {at::kFloat, at::kDouble};
const std::vector<std::vector<int64_t>> kShapes =
    {{0, 4}, {1, 1}, {3, 5}, {2, 3, 7}, {5, 64}, {3, 11, 130}, {9, 513}};

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
  EXPECT_TRUE(
      at::equal(ops::dropout(x, 0.5, large), plain_dropout(x, 0.5, large)));
}

TEST(DropoutOp, SaysWhatIsWrong) {
  const at::Tensor x = at::ones({3});
  expect_error(
      [&] { ops::dropout(x, 1.0, 1); },
      "[dropout] p must be in [0, 1), but got 1");
  expect_error(
      [&] { ops::dropout(x, std::nan(""), 1); },
      "[dropout] p must be in [0, 1)");
  expect_error(
      [&] { ops::dropout(x.to(at::kLong), 0.5, 1); },
      "[dropout] x must be float32 or float64, but got Long");
  expect_error(
      [&] { ops::dropout(at::Tensor(), 0.5, 1); },
      "[dropout] x must be a CPU tensor, but got an undefined one");
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
            [&](const Inputs& in) {
              return in[1] + plain_dropout(in[0], p, 3);
            },
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
      "[dropout_add] residual must be Float like the other inputs, but got "
      "Double");
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
  const at::Tensor poisoned =
      at::where(valid.unsqueeze(-1), x, at::full_like(x, std::nan("")));
  const auto got = with_gradients(
      [&](const Inputs& in) { return ops::glu(in[0], lengths); },
      {poisoned});
  const auto want = with_gradients(
      [&](const Inputs& in) {
        return at::glu(in[0], -1) * valid.unsqueeze(-1);
      },
      {x});
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
      "[glu] lengths must be int64 [B] on the CPU with B = 2, but got Long "
      "[3]");
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
            [&](const Inputs& in) {
              return activation_dropout(in[0], Activation::kRelu, p, 8);
            },
            [&](const Inputs& in) {
              return plain_dropout(at::relu(in[0]), p, 8);
            },
            {random_normal(shape, type)},
            tolerance(type));
        expect_same(
            [&](const Inputs& in) {
              return activation_dropout(in[0], Activation::kSwish, p, 8);
            },
            [&](const Inputs& in) {
              return plain_dropout(in[0] * in[0].sigmoid(), p, 8);
            },
            {random_normal(shape, type)},
            tolerance(type));
      }
}

TEST(ElementwiseOps, GradientsAreNumericalDerivatives) {
  const at::Tensor x = random_normal({2, 3, 6}, at::kDouble);
  const at::Tensor residual = random_normal({2, 3, 6}, at::kDouble);
  const at::Tensor lengths = at::tensor({3, 1}, at::kLong);
  expect_numerical_gradients(
      [](const Inputs& in) { return ops::dropout(in[0], 0.3, 2); },
      {x});
  expect_numerical_gradients(
      [](const Inputs& in) { return dropout_add(in[0], in[1], 0.3, 2); },
      {x, residual});
  expect_numerical_gradients(
      [&](const Inputs& in) { return ops::glu(in[0], lengths); },
      {x});
  for (const Activation activation : {Activation::kRelu, Activation::kSwish})
    expect_numerical_gradients(
        [&](const Inputs& in) {
          return activation_dropout(in[0], activation, 0.3, 2);
        },
        {x});
}

TEST(ElementwiseOps, ResultsDoNotDependOnTheNumberOfThreads) {
  const at::Tensor x = random_normal({300, 514}, at::kFloat);
  const at::Tensor residual = random_normal({300, 514}, at::kFloat);
  const std::vector<Call> calls = {
      [](const Inputs& in) { return ops::dropout(in[0], 0.3, 2); },
      [](const Inputs& in) { return dropout_add(in[0], in[1], 0.3, 2); },
      [](const Inputs& in) { return ops::glu(in[0]); },
      [](const Inputs& in) {
        return activation_dropout(in[0], Activation::kSwish, 0.3, 2);
      }};
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
