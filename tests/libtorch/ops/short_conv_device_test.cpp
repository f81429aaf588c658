#include <gtest/gtest.h>

#include "kernels/activation_names.h"
#include "kernels/cuda/short_conv/run.h"
#include "kernels/cuda_support.h"
#include "kernels/normalization_names.h"
#include "libtorch/ops/on_device.h"
#include "libtorch/ops/short_conv_case.h"
#include "libtorch/ops/short_conv_device.h"
#include "support/gradients.h"
#include "support/tolerances.h"

/// The operator as CUDA devices have it: on one, and everywhere with the device's
/// kernels run thread by thread on the host.
namespace seqconv::ops {
using namespace internal;
namespace {

using testing::relative_error;

struct HostRunner {
  struct Guard {
    explicit Guard(at::Device) {}
  };
  template <class Pass>
  static int64_t workspace(const Pass& pass) {
    if constexpr (requires { pass.grad_y; })
      return kernels::cuda::backward_workspace(pass);
    else
      return kernels::cuda::forward_workspace(pass);
  }
  template <class Pass>
  static void launch(const Pass& pass) {
    kernels::cuda::testing::HostLauncher launcher;
    run(launcher, pass);
  }
};
using OnHost = ShortConvDevice<HostRunner>;

class ShortConvDeviceTest : public ::testing::TestWithParam<at::DeviceType> {
 protected:
  void SetUp() override {
    SEQCONV_REQUIRE_DEVICE(GetParam());
    at::manual_seed(1);
  }

  bool on_cuda() const { return GetParam() == at::kCUDA; }
  /// float64 is for the definition, float16 for devices alone.
  std::vector<at::ScalarType> types() const {
    if (on_cuda())
      return {at::kFloat, at::kBFloat16, at::kHalf};
    return {at::kFloat, at::kBFloat16};
  }
  at::Tensor forward(const ShortConvArguments& args) const {
    return on_cuda() ? ShortConvDispatch::forward(args) : OnHost::forward(args);
  }
  ShortConvGradients backward(
      const ShortConvArguments& args, const at::Tensor& grad, const ShortConvMask& wanted) const {
    return on_cuda() ? ShortConvDispatch::backward(args, grad, wanted)
                     : OnHost::backward(args, grad, wanted);
  }
  at::Tensor step(const ShortConvStepArguments& args, ShortConvState& state) const {
    return on_cuda() ? ShortConvDispatch::step(args, state.ring, state.positions)
                     : OnHost::step(args, state.ring, state.positions);
  }
  void rollback(ShortConvState& state, const at::Tensor& counts, int64_t K, int64_t D = 1) const {
    if (on_cuda())
      return short_conv_rollback(state, device::there(counts), K, D);
    OnHost::rollback(state.positions, counts, state.ring.size(1) - (K - 1) * D);
  }

 private:
  testing::DeviceScope scope_{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(
    Kernels,
    ShortConvDeviceTest,
    ::testing::Values(at::kCPU, at::kCUDA),
    [](const ::testing::TestParamInfo<at::DeviceType>& info) {
      return info.param == at::kCUDA ? "OnCuda" : "OnHost";
    });

/// Inputs of a case in a type, all on the present device.
struct DeviceCase {
  std::vector<at::Tensor> in;
  ShortConvOptions options;

  DeviceCase(const ShortConvCase& c, const std::vector<at::Tensor>& exact, at::ScalarType type) {
    for (const at::Tensor& input : exact)
      in.push_back(input.defined() ? device::there(input.to(type)) : input);
    options = c.with(in);
    options.drop = device::there(options.drop);
    options.lengths = device::there(options.lengths);
    options.cu_seqlens = device::there(options.cu_seqlens);
    options.seq_idx = device::there(options.seq_idx);
  }

  ShortConvArguments arguments() const { return arguments_of(in[0], options); }
  ShortConvStepArguments step_arguments(
      const at::Tensor& x, const OptionalTensor& dynamic, const OptionalTensor& rows) const {
    return {
        .x = x,
        .weight = options.weight,
        .dynamic = dynamic,
        .bias = options.bias,
        .dilation = options.dilation,
        .activation = enum_name(options.activation),
        .residual = options.residual,
        .normalization = enum_name(options.normalization),
        .state_indices = rows};
  }
};

TEST_P(ShortConvDeviceTest, EqualsTheDefinition) {
  ShortConvCases cases(21);
  for (int i = 0; i < 60; ++i) {
    ShortConvCase c = cases.draw();
    c.options.renormalize_edges = false;
    const auto exact = c.inputs();
    const at::Tensor grad = exact[0].flip({-1});
    const auto want = testing::differentiate(
        [&](const auto& in) { return short_conv_reference(in[0], c.with(in)); }, exact, grad);
    for (const at::ScalarType type : types()) {
      SCOPED_TRACE(::testing::Message() << c << " " << c10::toString(type));
      const DeviceCase given(c, exact, type);
      const at::Tensor y = forward(given.arguments());
      EXPECT_EQ(y.scalar_type(), type);
      EXPECT_LE(relative_error(y.cpu(), want.y), testing::tolerance(type)) << "y";
      const auto [x, weight, dynamic, bias, state] =
          backward(given.arguments(), device::there(grad.to(type)), {true, true, true, true, true});
      const std::array<at::Tensor, 5> all = {x, weight, dynamic, bias, state};
      for (size_t j = 0, k = 0; j < all.size(); ++j) {
        if (!given.in[j].defined()) {
          EXPECT_EQ(all[j].numel(), 0) << j;
          continue;
        }
        EXPECT_EQ(all[j].scalar_type(), given.in[j].scalar_type()) << j;
        EXPECT_LE(relative_error(all[j].cpu(), want.grads[k++]), testing::tolerance(type))
            << "gradient " << j;
      }
    }
  }
}

TEST_P(ShortConvDeviceTest, AGradientThatIsNotWantedIsNotMade) {
  ShortConvCases cases(22);
  for (int i = 0; i < 20; ++i) {
    ShortConvCase c = cases.draw();
    c.options.renormalize_edges = false;
    SCOPED_TRACE(::testing::Message() << c);
    const DeviceCase given(c, c.inputs(), at::kFloat);
    const auto gradients = [&](const ShortConvMask& wanted) {
      auto [x, weight, dynamic, bias, state] =
          backward(given.arguments(), given.in[0].flip({-1}), wanted);
      return std::array<at::Tensor, 5>{x, weight, dynamic, bias, state};
    };
    const auto all = gradients({true, true, true, true, true});
    for (size_t j = 0; j < all.size(); ++j) {
      ShortConvMask wanted{};
      wanted[j] = true;
      const auto got = gradients(wanted);
      for (size_t k = 0; k < all.size(); ++k)
        EXPECT_TRUE(k == j ? at::equal(got[k], all[k]) : got[k].numel() == 0) << j << " " << k;
    }
    for (const at::Tensor& none : gradients({}))
      EXPECT_EQ(none.numel(), 0);
  }
}

/// All rows of a state that has one more, in another order, some tokens at a time.
TEST_P(ShortConvDeviceTest, StepsWithInputsTakenBackAreTheWhole) {
  ShortConvCases cases(23);
  for (int i = 0; i < 30; ++i) {
    ShortConvCase c = cases.draw();
    c.rows = ShortConvCase::Rows::kAll;
    c.state = false;
    c.steps = std::min<int64_t>(c.steps, 20);
    c.options = {
        .dilation = c.options.dilation,
        .activation = c.options.activation,
        .residual = c.options.residual,
        .normalization = c.options.normalization};
    const DeviceCase given(c, c.inputs(), types()[static_cast<size_t>(i % 2)]);
    SCOPED_TRACE(::testing::Message() << c);
    const at::Tensor whole = forward(given.arguments());
    const int64_t B = c.batch, M = B + 1;
    ShortConvState state = short_conv_initial_state(
        M, c.kernel_size, c.channels, given.in[0].options(), c.options.dilation, 2);
    std::vector<int64_t> order;
    for (int64_t b = 0; b < B; ++b)
      order.insert(order.begin() + cases.number(0, b), b + 1);
    const at::Tensor rows = device::there(at::tensor(order, at::kLong).to(at::kInt));
    const at::Tensor from = (rows - 1).to(at::kLong);
    for (int64_t t = 0; t < c.steps;) {
      const int64_t count = std::min(cases.number(1, 4), c.steps - t);
      const auto part = [&](const at::Tensor& all) {
        return all.narrow(1, t, count).index_select(0, from);
      };
      const OptionalTensor dynamic =
          given.in[2].defined() ? OptionalTensor(part(given.in[2])) : std::nullopt;
      const at::Tensor y = step(given.step_arguments(part(given.in[0]), dynamic, rows), state);
      EXPECT_TRUE(at::equal(y, part(whole))) << t;
      t += count;
      const int64_t back = std::min(cases.number(0, 2), count - 1);
      at::Tensor counts = at::full({M}, back, at::kLong);
      counts[0] = 0;
      rollback(state, counts, c.kernel_size, c.options.dilation);
      t -= back;
      EXPECT_EQ(state.positions[1][0].item<int64_t>(), t);
    }
    EXPECT_EQ(state.positions[0].count_nonzero().item<int64_t>(), 0);
  }
}

TEST_P(ShortConvDeviceTest, TakesBackAsManyInputsAsItCan) {
  ShortConvState state =
      short_conv_initial_state(3, 4, 2, device::there(at::zeros({})).options(), 1, 2);
  state.positions.copy_(
      at::tensor({int64_t{9}, int64_t{9}, int64_t{1}, int64_t{1}, int64_t{7}, int64_t{8}})
          .view({3, 2}));
  rollback(state, at::tensor({100, 100, -5}, at::kInt), 4);
  EXPECT_TRUE(at::equal(
      state.positions.cpu().select(1, 0), at::tensor({int64_t{7}, int64_t{0}, int64_t{7}})));
  EXPECT_TENSOR_ERROR(
      rollback(state, at::zeros({2}, at::kLong), 4),
      "[short_conv_rollback] counts must be Long or Int [M] with M = 3, but got Long [2]");
}

TEST(ShortConvOnDevices, NamesWhatACudaDeviceDoesNotHave) {
  const at::Tensor x = at::zeros({2, 5, 6});
  const OptionalTensor weight = at::zeros({3, 4});
  const ShortConvArguments args = {
      .op = kShortConv,
      .x = x,
      .weight = weight,
      .normalization = "softmax",
      .renormalize_edges = true};
  EXPECT_TENSOR_ERROR(
      OnHost::forward(args),
      "[short_conv] renormalize_edges must be false on a CUDA device, where lightconv and "
      "dynamicconv have it, but got true");
}

}  // namespace
}  // namespace seqconv::ops
