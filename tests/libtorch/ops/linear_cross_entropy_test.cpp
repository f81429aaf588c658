#include "libtorch/ops/linear_cross_entropy.h"

#include <limits>
#include <set>

#include "libtorch/ops/fused_support.h"
#include "libtorch/ops/product_sizes.h"
#include "support/golden_case.h"

namespace seqconv::ops {
using namespace internal;
namespace {

using namespace testing;
using seqconv::internal::testing::golden_files;
using seqconv::internal::testing::GoldenCase;

at::Tensor tensor_of(const GoldenCase& golden, const std::string& name) {
  const auto values = golden.values(name);
  return at::tensor(values, at::kDouble).view(golden.shape(name));
}

CrossEntropyOptions options_of(const GoldenCase& golden) {
  CrossEntropyOptions options;
  options.smoothing = golden.number("label_smoothing");
  options.form =
      golden.text("smoothing_form") == "all" ? SmoothingForm::kAll : SmoothingForm::kOthers;
  options.ignore_index = std::stoll(golden.text("pad_index"));
  return options;
}

/// Loss, nll and the gradient of the loss against a golden case.
void expect_golden(
    const GoldenCase& golden,
    const std::function<CrossEntropySums(const at::Tensor&)>& call,
    at::ScalarType type) {
  const double bound = type == at::kDouble ? 1e-12 : 1e-5;
  const at::Tensor want_gradient = tensor_of(golden, "grad_logits");
  const int64_t V = want_gradient.size(-1);
  const at::Tensor logits = tensor_of(golden, "logits").view({-1, V}).to(type).requires_grad_();
  const CrossEntropySums sums = call(logits);
  EXPECT_FALSE(sums.nll.requires_grad());
  sums.loss.backward();
  const auto relative = [](const at::Tensor& got, const at::Tensor& want) {
    return ((got.to(at::kDouble) - want).abs().max() / want.abs().max()).item<double>();
  };
  EXPECT_LE(relative(sums.loss.detach(), tensor_of(golden, "loss")), bound);
  EXPECT_LE(relative(sums.nll, tensor_of(golden, "nll_loss")), bound);
  EXPECT_LE(relative(logits.grad(), want_gradient.view({-1, V})), bound);
}

// Types and devices without a kernel: of small whole numbers the products are
// exact in 16 bits, so that the sums must be float32's. Gradients are rounded.
TEST(LinearCrossEntropy, SixteenBitsGiveTheSumsOfFloat32) {
  const at::Tensor hidden = at::randint(-2, 3, {13, 6}).to(at::kFloat);
  const at::Tensor weight = at::randint(-2, 3, {9, 6}).to(at::kFloat);
  at::Tensor target = at::randint(2, 9, {13}, at::kLong);
  target[4] = 1;  // ignored
  for (const auto form : {SmoothingForm::kAll, SmoothingForm::kOthers})
    for (const int64_t rows : {0, 5})
      for (const bool same_type : {false, true}) {
        CrossEntropyOptions options;
        options.smoothing = 0.1;
        options.form = form;
        options.chunk_rows = rows;
        const auto run = [&](at::Tensor h, at::Tensor w) {
          h.requires_grad_();
          w.requires_grad_();
          const auto sums = linear_cross_entropy(h, w, target, options);
          (sums.loss * 3).backward();
          return std::vector<at::Tensor>{sums.loss, sums.nll, h.grad(), w.grad()};
        };
        const auto want = run(hidden.clone(), weight.clone());
        const auto got =
            run(hidden.to(at::kBFloat16), same_type ? weight.to(at::kBFloat16) : weight.clone());
        EXPECT_EQ(got[0].scalar_type(), at::kFloat);
        EXPECT_LE(error(got[0], want[0]), 1e-6);
        EXPECT_LE(error(got[1], want[1]), 1e-6);
        EXPECT_EQ(got[3].scalar_type(), same_type ? at::kBFloat16 : at::kFloat);
        for (size_t i = 2; i < 4; ++i)
          EXPECT_LE(error(got[i], want[i]), 0x1p-6);
      }
}

TEST(LinearCrossEntropy, ScalesItsGradientsAlone) {
  const at::Tensor target = at::tensor({3, 0, 1, 5}, at::kLong);
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const at::Tensor hidden = random_normal({4, 6}, type);
    const at::Tensor weight = random_normal({9, 6}, at::kFloat);
    CrossEntropyOptions options;
    const auto run = [&](at::Tensor h, at::Tensor w) {
      h.requires_grad_();
      w.requires_grad_();
      const auto sums = linear_cross_entropy(h, w, target, options);
      sums.loss.backward();
      return std::vector<at::Tensor>{sums.loss, sums.nll, h.grad(), w.grad()};
    };
    const auto plain = run(hidden.clone(), weight.clone());
    options.gradient_scale = at::scalar_tensor(1024, at::kFloat);
    const auto scaled = run(hidden.clone(), weight.clone());
    for (size_t i = 0; i < 2; ++i)
      EXPECT_TRUE(scaled[i].equal(plain[i]));
    for (size_t i = 2; i < 4; ++i)
      EXPECT_TRUE(scaled[i].equal(plain[i] * 1024));
  }
}

// Sizes of products on the CPU: few, and none much larger than what they hold.
TEST(ProductSizes, AreFewAndNearlyWhatIsAskedFor) {
  std::set<int64_t> sizes;
  for (int64_t rows = 1; rows <= 8192; ++rows) {
    const int64_t size = few_sizes(rows);
    sizes.insert(size);
    ASSERT_GE(size, rows);
    ASSERT_LE(size - rows, std::max<int64_t>(7, rows / 8));
    ASSERT_EQ(few_sizes(size), size);
  }
  EXPECT_EQ(few_sizes(0), 0);
  EXPECT_LE(sizes.size(), 80u);
}

// Of what float16 would round to 0 a scaled gradient keeps all its digits.
TEST(LinearCrossEntropy, ScalesBeforeItRounds) {
  const at::Tensor hidden = at::ones({1, 1}, at::kHalf).requires_grad_();
  const at::Tensor weight = at::tensor({20.0F, 0.0F, 0.0F}).unsqueeze(1);
  weight.requires_grad_();
  CrossEntropyOptions options;
  options.gradient_scale = at::scalar_tensor(0x1p15, at::kFloat);
  linear_cross_entropy(hidden, weight, at::tensor({0}, at::kLong), options).loss.backward();
  const double other = std::exp(-20.0);  // probability of another word
  EXPECT_NEAR(weight.grad()[1].item<double>(), 0x1p15 * other, 0x1p15 * other / 100);
}

TEST(CrossEntropyGolden, ReferenceAndFusedMatchEveryCase) {
  for (const auto& file : golden_files("label_smoothed_cross_entropy")) {
    SCOPED_TRACE(file.filename());
    const GoldenCase golden(file);
    CrossEntropyOptions options = options_of(golden);
    const at::Tensor target = at::tensor(golden.integers("target"), at::kLong);
    for (const auto type : {at::kDouble, at::kFloat}) {
      expect_golden(
          golden,
          [&](const at::Tensor& logits) {
            return cross_entropy_reference(logits, target, options);
          },
          type);
      for (const int64_t rows : {0, 1, 5}) {
        options.chunk_rows = rows;
        expect_golden(
            golden,
            [&](const at::Tensor& logits) {
              const at::Tensor identity = at::eye(logits.size(1), logits.options());
              return linear_cross_entropy(logits, identity, target, options);
            },
            type);
      }
    }
  }
}

struct Problem {
  at::Tensor hidden, weight, target;
};

/// Every fourth target is ignored when `padded`.
Problem random_problem(int64_t rows, int64_t vocabulary, at::ScalarType type, bool padded) {
  at::manual_seed(rows + vocabulary);
  Problem problem{
      random_normal({rows, 9}, type),
      random_normal({vocabulary, 9}, type),
      at::randint(vocabulary, {rows}, at::kLong)};
  problem.target.masked_fill_(problem.target.eq(1), 0);
  if (padded)
    problem.target.slice(0, 0, rows, 4).fill_(1);
  return problem;
}

TEST(LinearCrossEntropyOp, MatchesTheReferenceForEveryChunkSize) {
  for (const auto type : {at::kFloat, at::kDouble})
    for (const bool padded : {false, true})
      for (const auto form : {SmoothingForm::kAll, SmoothingForm::kOthers})
        for (const int64_t chunk : {0, 1, 3, 7, 100})
          for (const int64_t rows : {0, 1, 22}) {
            const Problem problem = random_problem(rows, 37, type, padded);
            CrossEntropyOptions options;
            options.smoothing = 0.1;
            options.form = form;
            options.chunk_rows = chunk;
            expect_same(
                [&](const Inputs& in) {
                  return linear_cross_entropy(in[0], in[1], problem.target, options).loss;
                },
                [&](const Inputs& in) {
                  return cross_entropy_reference(in[0].mm(in[1].t()), problem.target, options).loss;
                },
                {problem.hidden, problem.weight},
                type == at::kDouble ? 1e-12 : 3e-6);
          }
}

TEST(LinearCrossEntropyOp, GradientsAreNumericalDerivatives) {
  const Problem problem = random_problem(5, 7, at::kDouble, /*padded=*/true);
  for (const auto form : {SmoothingForm::kAll, SmoothingForm::kOthers}) {
    CrossEntropyOptions options;
    options.smoothing = 0.2;
    options.form = form;
    options.chunk_rows = 2;
    expect_numerical_gradients(
        [&](const Inputs& in) {
          return linear_cross_entropy(in[0], in[1], problem.target, options).loss;
        },
        {problem.hidden, problem.weight});
  }
}

TEST(LinearCrossEntropyOp, LossIsTheSameWithoutGradients) {
  const Problem problem = random_problem(20, 50, at::kFloat, /*padded=*/true);
  CrossEntropyOptions options;
  options.smoothing = 0.1;
  const auto plain = linear_cross_entropy(problem.hidden, problem.weight, problem.target, options);
  EXPECT_FALSE(plain.loss.requires_grad());
  const at::Tensor weight = problem.weight.clone().requires_grad_();
  const auto kept = linear_cross_entropy(problem.hidden, weight, problem.target, options);
  EXPECT_TRUE(kept.loss.requires_grad());
  EXPECT_TRUE(at::equal(kept.loss.detach(), plain.loss));
  EXPECT_TRUE(at::equal(kept.nll, plain.nll));
  const at::AutoGradMode no_grad(/*enabled=*/false);
  EXPECT_FALSE(
      linear_cross_entropy(problem.hidden, weight, problem.target, options).loss.requires_grad());
}

TEST(LinearCrossEntropyOp, OnlyWhatWantsAGradientGetsOne) {
  const Problem problem = random_problem(8, 12, at::kDouble, /*padded=*/true);
  CrossEntropyOptions options;
  const auto want = with_gradients(
      [&](const Inputs& in) {
        return linear_cross_entropy(in[0], in[1], problem.target, options).loss;
      },
      {problem.hidden, problem.weight});
  const auto hidden_only = with_gradients(
      [&](const Inputs& in) {
        return linear_cross_entropy(in[0], problem.weight, problem.target, options).loss;
      },
      {problem.hidden});
  const auto weight_only = with_gradients(
      [&](const Inputs& in) {
        return linear_cross_entropy(problem.hidden, in[0], problem.target, options).loss;
      },
      {problem.weight});
  EXPECT_TRUE(at::equal(hidden_only[1], want[1]));
  EXPECT_TRUE(at::equal(weight_only[1], want[2]));
}

TEST(LinearCrossEntropyOp, IncomingGradientScalesAndMayComeTwice) {
  const Problem problem = random_problem(6, 10, at::kDouble, /*padded=*/false);
  const at::Tensor hidden = problem.hidden.clone().requires_grad_();
  const at::Tensor weight = problem.weight.clone().requires_grad_();
  const auto sums = linear_cross_entropy(hidden, weight, problem.target, {});
  sums.loss.backward({}, /*retain_graph=*/true);
  const at::Tensor once = hidden.grad().clone();
  (sums.loss * 2).backward();
  EXPECT_LE(error(hidden.grad(), once * 3), 1e-14);
}

TEST(LinearCrossEntropyOp, AccumulatingIntoGradLeavesSavedOnesAlone) {
  const Problem problem = random_problem(6, 10, at::kDouble, /*padded=*/false);
  const at::Tensor hidden = problem.hidden.clone().requires_grad_();
  const auto sums = linear_cross_entropy(hidden, problem.weight, problem.target, {});
  sums.loss.backward({}, /*retain_graph=*/true);
  const at::Tensor once = hidden.grad().clone();
  hidden.grad().add_(100);
  hidden.mutable_grad() = at::Tensor();
  sums.loss.backward();
  EXPECT_LE(error(hidden.grad(), once), 1e-14);
}

TEST(LinearCrossEntropyOp, NanAndInfinityReachTheLoss) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double bad : {std::nan(""), infinity, -infinity}) {
    Problem problem = random_problem(40, 33, at::kFloat, /*padded=*/true);
    problem.hidden[17][3] = bad;
    CrossEntropyOptions options;
    options.smoothing = 0.1;
    const auto sums = linear_cross_entropy(
        problem.hidden.requires_grad_(), problem.weight, problem.target, options);
    EXPECT_FALSE(std::isfinite(sums.loss.item<double>())) << bad;
    // A bad row that is ignored is not looked at.
    problem.target[17] = 1;
    EXPECT_TRUE(
        std::isfinite(linear_cross_entropy(problem.hidden, problem.weight, problem.target, options)
                          .loss.item<double>()));
  }
}

TEST(LinearCrossEntropyOp, AllRowsIgnoredGiveZero) {
  Problem problem = random_problem(5, 10, at::kFloat, /*padded=*/false);
  problem.target.fill_(1);
  const auto out = with_gradients(
      [&](const Inputs& in) { return linear_cross_entropy(in[0], in[1], problem.target, {}).loss; },
      {problem.hidden, problem.weight});
  EXPECT_EQ(out[0].item<float>(), 0);
  EXPECT_TRUE(at::equal(out[1], at::zeros_like(problem.hidden)));
  EXPECT_TRUE(at::equal(out[2], at::zeros_like(problem.weight)));
}

TEST(LinearCrossEntropyOp, ScalarsHaveTheTypeOfTheInputs) {
  for (const auto type : {at::kFloat, at::kDouble}) {
    const Problem problem = random_problem(5, 10, type, /*padded=*/false);
    const auto sums = linear_cross_entropy(problem.hidden, problem.weight, problem.target, {});
    EXPECT_EQ(sums.loss.scalar_type(), type);
    EXPECT_EQ(sums.loss.dim(), 0);
    EXPECT_EQ(sums.nll.scalar_type(), type);
    EXPECT_EQ(sums.nll.dim(), 0);
  }
}

TEST(LinearCrossEntropyOp, SaysWhatIsWrong) {
  const at::Tensor hidden = at::ones({2, 4}), weight = at::ones({5, 4});
  const at::Tensor target = at::tensor({0, 2}, at::kLong);
  const auto call = [&](const at::Tensor& h,
                        const at::Tensor& w,
                        const at::Tensor& t,
                        const CrossEntropyOptions& o) {
    return [=] { linear_cross_entropy(h, w, t, o); };
  };
  expect_error(
      call(at::ones({2, 3}), weight, target, {}),
      "[linear_cross_entropy] hidden must be [M, C] and weight [V, C], but got [2, 3] and [5, 4]");
  expect_error(
      call(hidden, weight, at::tensor({0, 5}, at::kLong), {}),
      "[linear_cross_entropy] targets must be in [0, 5) or the ignored 1, but got 5 in row 1");
  expect_error(call(hidden, weight, at::tensor({0, -100}, at::kLong), {}), "but got -100 in row 1");
  expect_error(
      call(hidden, weight, at::tensor({0}, at::kLong), {}),
      "[linear_cross_entropy] target must be int64 [M] on the CPU with M = 2, but got Long [1]");
  CrossEntropyOptions options;
  options.smoothing = 1;
  expect_error(
      call(hidden, weight, target, options),
      "[linear_cross_entropy] smoothing must be in [0, 1), but got 1");
  options = {};
  options.chunk_rows = -1;
  expect_error(
      call(hidden, weight, target, options),
      "[linear_cross_entropy] chunk_rows must be >= 0, but got -1");
  options = {};
  options.form = SmoothingForm::kOthers;
  expect_error(
      call(hidden, at::ones({1, 4}), at::zeros({2}, at::kLong), options),
      "[linear_cross_entropy] the vocabulary must hold 2 words or more, but got 1");
  expect_error(
      [&] { cross_entropy_reference(at::ones({4}), target, {}); },
      "[cross_entropy_reference] logits must be [M, V], but got [4]");
}

TEST(LinearCrossEntropyOp, IgnoreIndexMayLieOutsideTheVocabulary) {
  const Problem problem = random_problem(4, 10, at::kDouble, /*padded=*/false);
  CrossEntropyOptions options;
  options.ignore_index = -100;
  at::Tensor target = problem.target.clone();
  target[2] = -100;
  const at::Tensor logits = problem.hidden.mm(problem.weight.t());
  EXPECT_LE(
      error(
          linear_cross_entropy(problem.hidden, problem.weight, target, options).loss,
          cross_entropy_reference(logits, target, options).loss),
      1e-12);
}

}  // namespace
}  // namespace seqconv::ops
