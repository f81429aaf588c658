#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "libtorch/nn/attention.h"
#include "libtorch/nn/positions.h"
#include "support/golden.h"
#include "support/tolerances.h"

namespace seqconv::internal {
namespace {

using testing::TensorCase;

void check_attention(const TensorCase& golden, at::ScalarType type) {
  SCOPED_TRACE(concat(golden.name, " in ", c10::toString(type)));
  const auto leaf = [&](const char* name) {
    return golden.at(name).detach().to(type).clone().set_requires_grad(true);
  };
  const at::Tensor q = leaf("q"), k = leaf("k"), v = leaf("v");
  LocalAttentionOptions options{
      .heads = golden.number("heads"),
      .kernel_size = golden.number("kernel_size"),
      .causal = golden.flag("causal")};
  if (golden.has("lengths"))
    options.lengths = golden.at("lengths");
  DropoutPlan evaluation;
  const at::Tensor y = local_attention(q, k, v, options, evaluation);
  y.backward(golden.at("grad_output").to(type));
  const double bound = testing::tolerance(type);
  EXPECT_NEAR_TENSOR(y, golden.at("y"), bound);
  EXPECT_NEAR_TENSOR(q.grad(), golden.at("grad_q"), bound);
  EXPECT_NEAR_TENSOR(k.grad(), golden.at("grad_k"), bound);
  EXPECT_NEAR_TENSOR(v.grad(), golden.at("grad_v"), bound);
  EXPECT_TRUE(at::equal(
      window_mask(q.size(1), options.kernel_size, golden.number("padding_left")).to(at::kDouble),
      golden.at("mask")));
}

TEST(LocalAttentionGolden, EveryCase) {
  const auto cases = testing::load_golden_cases("local_attention");
  for (testing::TensorCase golden : cases) {
    testing::shift_to_right_padding(
        golden, {"q", "k", "v", "y", "grad_output", "grad_q", "grad_k", "grad_v"});
    check_attention(golden, at::kDouble);
    check_attention(golden, at::kFloat);
  }
}

TEST(SinusoidalPositionsGolden, EveryCase) {
  const auto cases = testing::load_golden_cases("sinusoidal_positions");
  for (const TensorCase& golden : cases) {
    SCOPED_TRACE(golden.name);
    const at::Tensor& positions = golden.at("positions");
    const at::Tensor real = golden.at("tokens").ne(golden.number("pad_index"));
    // What the embedding does: the first real token stands at kFirstPosition.
    EXPECT_TRUE(at::equal(
        positions.masked_select(real),
        (real.to(at::kLong).cumsum(1) - 1 + kFirstPosition).masked_select(real)));
    const at::Tensor table =
        sinusoidal_positions(0, positions.max().item<int64_t>() + 1, golden.number("dim"));
    const at::Tensor got = table.index_select(0, positions.reshape(-1))
                               .view({positions.size(0), positions.size(1), -1})
                               .mul(real.unsqueeze(-1));
    EXPECT_LE((got - golden.at("y")).abs().max().item<double>(), 1e-5);
  }
}

TEST(SinusoidalPositions, NarrowEmbeddingsAreAnError) {
  EXPECT_THROW(sinusoidal_positions(2, 4, 3), c10::Error);
  EXPECT_NO_THROW(sinusoidal_positions(2, 4, 4));
}

}  // namespace
}  // namespace seqconv::internal
