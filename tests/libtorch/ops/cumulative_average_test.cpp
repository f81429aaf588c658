#include "seqconv/ops/cumulative_average.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>

#include "libtorch/ops/golden_support.h"

namespace seqconv::ops {
using namespace internal;
namespace {

using testing::leaves;
using OptionalLengths = std::optional<at::Tensor>;

at::Tensor random_input(const std::vector<int64_t>& shape, at::ScalarType type) {
  return at::randn(shape, at::kFloat).to(at::kBFloat16).to(type);
}

testing::TensorFunction average(const OptionalLengths& lengths = {}) {
  return [lengths](const std::vector<at::Tensor>& in) {
    return device::cumulative_average(in[0], lengths);
  };
}

/// Feeds x in chunks of `chunk` inputs.
at::Tensor in_chunks(const at::Tensor& x, int64_t chunk) {
  at::Tensor state = average_initial_state(x.size(0), x.size(2), x.options());
  std::vector<at::Tensor> parts;
  for (int64_t t = 0; t < x.size(1); t += chunk)
    parts.push_back(device::cumulative_average_step(
        x.narrow(1, t, std::min(chunk, x.size(1) - t)), state, at::tensor(t)));
  return at::cat(parts, 1);
}

class CumulativeAverageOp : public ::testing::TestWithParam<at::DeviceType> {
 protected:
  void SetUp() override {
    SEQCONV_REQUIRE_DEVICE(GetParam());
    at::manual_seed(1);
  }

 private:
  testing::DeviceScope scope_{GetParam()};
};
using CumulativeAverageGradient = CumulativeAverageOp;

std::string device_name(const ::testing::TestParamInfo<at::DeviceType>& info) {
  return info.param == at::kCPU ? "Cpu" : "Cuda";
}
INSTANTIATE_TEST_SUITE_P(
    Each, CumulativeAverageOp, ::testing::Values(at::kCPU, at::kCUDA), device_name);
INSTANTIATE_TEST_SUITE_P(
    Each, CumulativeAverageGradient, ::testing::Values(at::kCPU, at::kCUDA), device_name);

/// What holds of the CPU alone: threads and errors about values.
class CumulativeAverageCpu : public ::testing::Test {
 protected:
  void SetUp() override { at::manual_seed(1); }
};

void expect_reference(const std::vector<int64_t>& shape, const OptionalLengths& lengths) {
  for (const at::ScalarType type : testing::types()) {
    SCOPED_TRACE(concat(at::IntArrayRef(shape), " ", c10::toString(type)));
    const at::Tensor x = random_input(shape, at::kDouble);
    const at::Tensor grad = x.flip(2);
    const Differentiated want = differentiate(
        [&](const auto& in) { return cumulative_average_reference(in[0], lengths); }, {x}, grad);
    const Differentiated got = differentiate(average(lengths), {x.to(type)}, grad.to(type));
    EXPECT_EQ(got.y.scalar_type(), type);
    EXPECT_LE(relative_error(got.y, want.y), tolerance(type)) << "y";
    EXPECT_LE(relative_error(got.grads[0], want.grads[0]), tolerance(type)) << "gradient";
  }
}

TEST_P(CumulativeAverageOp, MatchesTheReferenceOnAwkwardSizes) {
  for (const int64_t B : {1, 3, 20})
    for (const int64_t T : {1, 2, 31, 130})
      for (const int64_t C : {1, 7, 64, 65, 513})
        expect_reference({B, T, C}, {});
}

TEST_P(CumulativeAverageOp, MatchesTheReferenceWithLengths) {
  expect_reference({3, 40, 9}, at::tensor({40, 0, 13}, at::kLong));
  expect_reference({2, 5, 70}, at::tensor({1, 5}, at::kLong));
}

TEST_P(CumulativeAverageOp, AnEmptyBatchOrSequenceGivesAnEmptyResult) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{0, 5, 3}, {2, 0, 3}, {0, 0, 3}}) {
    const at::Tensor x = at::zeros(shape);
    const Differentiated got = differentiate(average(), {x}, x);
    EXPECT_EQ(got.y.sizes(), x.sizes());
    EXPECT_EQ(got.grads[0].sizes(), x.sizes());
  }
}

TEST_P(CumulativeAverageOp, TakesStridedInputs) {
  const at::Tensor x = at::randn({2, 9, 6}), strided = at::stack({x, x}, -1);
  EXPECT_TRUE(
      device::cumulative_average(strided.select(-1, 1)).equal(device::cumulative_average(x)));
}

TEST_P(CumulativeAverageOp, PaddingChangesNothingWhateverItHolds) {
  const at::Tensor x = at::randn({1, 9, 6}), grad = at::randn_like(x);
  const Differentiated want = differentiate(average(), {x}, grad);
  const auto pad = [](const at::Tensor& t) {
    return at::cat({t, at::full_like(t.narrow(1, 0, 4), NAN)}, 1);
  };
  const Differentiated got =
      differentiate(average(at::tensor({9}, at::kLong)), {pad(x)}, pad(grad));
  for (const auto& [padded, plain] : {std::pair{got.y, want.y}, {got.grads[0], want.grads[0]}}) {
    EXPECT_TRUE(padded.narrow(1, 0, 9).equal(plain));
    EXPECT_TRUE(padded.narrow(1, 9, 4).eq(0).all().item<bool>());
  }
}

TEST_P(CumulativeAverageOp, ARowIsTheSameAloneAndInABatch) {
  const at::Tensor x = at::randn({20, 30, 130});
  const at::Tensor all = device::cumulative_average(x);
  for (int64_t b = 0; b < 20; ++b)
    EXPECT_TRUE(device::cumulative_average(x.narrow(0, b, 1)).equal(all.narrow(0, b, 1)));
}

TEST_P(CumulativeAverageOp, SeesNoFuture) {
  const at::Tensor x = at::randn({2, 300, 5});
  const at::Tensor whole = device::cumulative_average(x);
  for (const int64_t T : {1, 7, 29, 130})
    EXPECT_TRUE(device::cumulative_average(x.narrow(1, 0, T)).equal(whole.narrow(1, 0, T)));
}

TEST_F(CumulativeAverageCpu, AnyNumberOfThreadsGivesTheSameBits) {
  const at::Tensor x = at::randn({5, 200, 700});
  const int threads = at::get_num_threads();
  const Differentiated want = differentiate(average(), {x}, x);
  for (const int count : {1, 2, 3}) {
    at::set_num_threads(count);
    const Differentiated got = differentiate(average(), {x}, x);
    EXPECT_TRUE(got.y.equal(want.y)) << count;
    EXPECT_TRUE(got.grads[0].equal(want.grads[0])) << count;
  }
  at::set_num_threads(threads);
}

TEST_P(CumulativeAverageOp, StepsOfAnySizeEqualTheFullForm) {
  for (const at::ScalarType type : testing::types())
    for (const int64_t chunk : {1, 2, 33, 70}) {
      SCOPED_TRACE(concat(c10::toString(type), " chunk ", chunk));
      const at::Tensor x = random_input({3, 70, 11}, type);
      const at::Tensor steps = in_chunks(x, chunk);
      const at::Tensor whole = device::cumulative_average(x);
      // A device sums by pieces: there the last bit of float64 may differ.
      if (testing::test_device().is_cpu())
        EXPECT_TRUE(steps.equal(whole));
      else
        EXPECT_LE(relative_error(steps, whole), tolerance(type));
    }
}

TEST_P(CumulativeAverageOp, AStepChangesAStridedStateInPlace) {
  const at::Tensor x = at::randn({2, 3, 4});
  at::Tensor dense = average_initial_state(2, 4, x.options());
  at::Tensor strided = at::zeros({4, 2}, at::kDouble).t();
  device::cumulative_average_step(x, dense, at::tensor(int64_t{0}));
  device::cumulative_average_step(x, strided, at::tensor(int64_t{0}));
  EXPECT_TRUE(dense.equal(strided));
  EXPECT_LE(relative_error(dense, x.to(at::kDouble).sum(1)), 1e-14);
}

TEST_P(CumulativeAverageOp, AStepOfNoRowsGivesNone) {
  const at::Tensor x = at::randn({0, 3, 4});
  at::Tensor state = average_initial_state(0, 4, x.options());
  const at::Tensor y = device::cumulative_average_step(x, state, at::tensor(int64_t{0}));
  EXPECT_EQ(y.sizes(), x.sizes());
}

TEST_P(CumulativeAverageOp, TheErrorDoesNotGrowWithTheLengthOfTheSequence) {
  // A mean of 1 is what ruins float32 sums of many inputs.
  const at::Tensor x = at::randn({1, 50000, 3}) + 1;
  const at::Tensor want = cumulative_average_reference(x.to(at::kDouble), {});
  EXPECT_LE(
      relative_error(
          device::cumulative_average(x).narrow(1, 49000, 1000), want.narrow(1, 49000, 1000)),
      1e-7);
}

TEST_F(CumulativeAverageCpu, ErrorsNameWhatWasWantedAndWhatCame) {
  const auto x = at::zeros({2, 3, 4});
  EXPECT_TENSOR_ERROR(
      cumulative_average(at::zeros({3, 4})),
      "[cumulative_average] x must be [B, T, C], but got [3, 4]");
  EXPECT_TENSOR_ERROR(
      cumulative_average(x, at::tensor({4, 1}, at::kLong)),
      "[cumulative_average] lengths must be in 0 .. T = 3, but got 4 in row 0");
  at::Tensor state = average_initial_state(3, 4, x.options());
  EXPECT_TENSOR_ERROR(
      cumulative_average_step(x, state, at::tensor(int64_t{0})),
      "[cumulative_average_step] state must be Double [N, C] with N = 2, C = 4 on cpu, but got "
      "Double [3, 4] on cpu");
  at::Tensor narrow = at::zeros({2, 4});
  EXPECT_TENSOR_ERROR(
      cumulative_average_step(x, narrow, at::tensor(int64_t{0})),
      "[cumulative_average_step] state must be Double [N, C] with N = 2, C = 4 on cpu, but got "
      "Float [2, 4] on cpu");
  at::Tensor good = average_initial_state(2, 4, x.options());
  EXPECT_TENSOR_ERROR(
      cumulative_average_step(x, good, at::tensor(int64_t{-1})),
      "[cumulative_average_step] position must not be negative, but got -1");
  EXPECT_TENSOR_ERROR(
      cumulative_average_step(x, good, at::ones({1})),
      "[cumulative_average_step] position must be one int64 element, but got Float [1]");
  EXPECT_TENSOR_ERROR(
      cumulative_average_step(x.narrow(1, 0, 0), good, at::tensor(int64_t{0})),
      "[cumulative_average_step] x must hold at least one new input, but got [2, 0, 4]");
}

TEST_P(CumulativeAverageGradient, EqualsCentralDifferences) {
  const at::Tensor x = at::randn({2, 7, 3}, at::kDouble);
  testing::expect_numerical_gradients(average(), {x});
  testing::expect_numerical_gradients(average(at::tensor({7, 3}, at::kLong)), {x});
}

TEST_P(CumulativeAverageGradient, HasASecondDerivative) {
  // The gradient of sum(average(x)^2) is a linear map of x: differences of it
  // are exact.
  const auto gradient = [](const std::vector<at::Tensor>& in) {
    const at::Tensor x = in[0].requires_grad() ? in[0] : leaves(in)[0];
    return torch::autograd::grad(
        {device::cumulative_average(x, at::tensor({5, 3}, at::kLong)).square().sum()},
        {x},
        {},
        /*retain_graph=*/true,
        /*create_graph=*/true)[0];
  };
  testing::expect_numerical_gradients(gradient, {at::randn({2, 5, 3}, at::kDouble)});
}

TEST_F(CumulativeAverageCpu, AStepRefusesInputsThatWantOne) {
  const at::Tensor x = at::randn({2, 3, 4}).requires_grad_(true);
  at::Tensor state = average_initial_state(2, 4, x.options());
  EXPECT_TENSOR_ERROR(
      cumulative_average_step(x, state, at::tensor(int64_t{0})),
      "[cumulative_average_step] has no gradient and must be called without grad mode "
      "(torch.no_grad()), but got an input that requires one");
}

TEST(CumulativeAverageGolden, ValuesAndGradients) {
  for_each_case("cumulative_average", [](const auto& golden, auto type) {
    expect_golden(
        golden,
        differentiate(
            average(maybe(golden, "lengths")),
            {typed(golden, "x", type)},
            typed(golden, "grad_output", type)),
        {"x"},
        tolerance(type));
  });
}

TEST(CumulativeAverageGolden, ChunksAndSingleTokens) {
  const auto check = [](const auto& golden, auto type, bool single) {
    const at::Tensor x = typed(golden, "x", type);
    at::Tensor state = average_initial_state(x.size(0), x.size(2), x.options());
    const auto step = [&](int64_t first, int64_t count) {
      return device::cumulative_average_step(x.narrow(1, first, count), state, at::tensor(first));
    };
    EXPECT_LE(relative_error(stepped(golden, single, step), golden.at("y")), tolerance(type));
  };
  for_each_causal_case("cumulative_average", check);
}

}  // namespace
}  // namespace seqconv::ops
