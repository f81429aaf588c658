#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "libtorch/ops/conv_form.h"
#include "support/tolerances.h"

/// DropConnect of both convolutions: what the seed means, and its mean.
namespace seqconv::ops {
using namespace internal;
namespace {

using testing::differentiate;
using testing::Differentiated;
using testing::relative_error;

class ConvDropConnect : public ConvDeviceTest {
 protected:
  static ConvCall call() { return {.form = GetParam(), .sizes = {2, 70, 10, 5, 7, 3}}; }
};

INSTANTIATE_TEST_SUITE_P(Both, ConvDropConnect, conv_parameters(), conv_parameter_name);

/// The mask that the seed stands for: element i of the taps in row-major order
/// is kept when its random word is at least the threshold.
at::Tensor mask_of(const ConvCall& call, int64_t seed, double p) {
  const at::Tensor mask = at::empty(call.logit_shape(), at::kDouble);
  double* const out = mask.mutable_data_ptr<double>();
  for (int64_t i = 0; i < mask.numel(); ++i)
    out[i] = random_word(static_cast<uint64_t>(seed), static_cast<uint64_t>(i)) >= drop_threshold(p)
        ? 1
        : 0;
  return mask;
}

TEST_P(ConvDropConnect, ASeedEqualsItsExplicitMask) {
  for (const int64_t seed : {int64_t{1}, int64_t{-3}, int64_t{1} << 40})
    for (const double p : {0.1, 0.5, 0.9}) {
      ConvCall seeded = call(), masked = call();
      seeded.drop = {.p = p, .seed = at::tensor(seed)};
      masked.drop = {.p = p, .mask = mask_of(masked, seed, p)};
      const auto in = seeded.inputs(at::kFloat);
      const at::Tensor grad = at::randn_like(in[0]);
      const Differentiated a = differentiate(seeded.function(), in, grad);
      const Differentiated b = differentiate(masked.function(), in, grad);
      EXPECT_TRUE(a.y.equal(b.y));
      for (size_t i = 0; i < a.grads.size(); ++i)
        EXPECT_TRUE(a.grads[i].equal(b.grads[i])) << i;
    }
}

TEST_P(ConvDropConnect, MatchesTheReference) {
  for (const at::ScalarType type : testing::types()) {
    ConvCall dropped = call();
    dropped.drop = {.p = 0.4, .seed = at::tensor(int64_t{11})};
    const auto exact = dropped.inputs();
    std::vector<at::Tensor> rounded;
    for (const at::Tensor& input : exact)
      rounded.push_back(input.to(type));
    const at::Tensor grad = exact[0].flip(2);
    const auto want = differentiate(dropped.reference_function(), exact, grad);
    const auto got = differentiate(dropped.function(), rounded, grad.to(type));
    EXPECT_LE(relative_error(got.y, want.y), testing::tolerance(type));
    for (size_t i = 0; i < got.grads.size(); ++i)
      EXPECT_LE(relative_error(got.grads[i], want.grads[i]), testing::tolerance(type)) << i;
  }
}

TEST_P(ConvDropConnect, PreservesTheMean) {
  // Inputs of 1: the result is the sum of the taps, 1 on average.
  ConvCall dropped = call();
  dropped.normalization = Normalization::kSoftmax;
  auto in = dropped.inputs();
  in[0].fill_(1);
  in[2] = at::Tensor();
  const auto interior = [](const at::Tensor& y) {
    return y.narrow(1, 3, 64).mean().item<double>();  // no tap falls outside
  };
  double sum = 0;
  constexpr int kSeeds = 400;
  for (int64_t seed = 0; seed < kSeeds; ++seed) {
    dropped.drop = {.p = 0.3, .seed = at::tensor(seed)};
    sum += interior(dropped.run(in));
  }
  EXPECT_NEAR(sum / kSeeds, 1.0, 0.03);
}

TEST_P(ConvDropConnect, WithoutProbabilityOrSourceNothingIsDropped) {
  ConvCall plain = call(), seeded = call(), bare = call();
  seeded.drop = {.p = 0, .seed = at::tensor(int64_t{5})};
  bare.drop = {.p = 0.5};
  const auto in = plain.inputs();
  EXPECT_TRUE(seeded.run(in).equal(plain.run(in)));
  EXPECT_TRUE(bare.run(in).equal(plain.run(in)));
}

TEST_P(ConvDropConnect, OtherSeedsGiveOtherMasks) {
  ConvCall a = call(), b = call();
  a.drop = {.p = 0.5, .seed = at::tensor(int64_t{5})};
  b.drop = {.p = 0.5, .seed = at::tensor(int64_t{6})};
  const auto in = a.inputs();
  EXPECT_FALSE(a.run(in).equal(b.run(in)));
}

}  // namespace
}  // namespace seqconv::ops
