#include "libtorch/nn/attention.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

namespace seqconv::internal {
namespace {

/// Attention of one head, one query at a time, over the keys that `sees`
/// allows. q, k, v [T, R].
at::Tensor naive(
    const at::Tensor& q,
    const at::Tensor& k,
    const at::Tensor& v,
    const std::function<bool(int64_t, int64_t)>& sees) {
  std::vector<at::Tensor> rows;
  for (int64_t t = 0; t < q.size(0); ++t) {
    std::vector<int64_t> keys;
    for (int64_t s = 0; s < k.size(0); ++s)
      if (sees(t, s))
        keys.push_back(s);
    const at::Tensor index = at::tensor(keys);
    const at::Tensor weights =
        at::softmax(at::mv(k.index_select(0, index), q[t]) / std::sqrt(double(q.size(1))), 0);
    rows.push_back(at::mv(v.index_select(0, index).t(), weights));
  }
  return at::stack(rows);
}

TEST(LocalAttention, SeesTheTapsOfAConvolution) {
  at::manual_seed(1);
  const int64_t steps = 9;
  const at::Tensor q = at::randn({1, steps, 4}), k = at::randn({1, steps, 4}),
                   v = at::randn({1, steps, 4});
  for (const int64_t kernel : {1, 2, 3, 4, 7, 30}) {
    for (const bool causal : {false, true}) {
      DropoutPlan plan;
      const at::Tensor got =
          local_attention(q, k, v, {.kernel_size = kernel, .causal = causal}, plan);
      const int64_t left = causal ? kernel - 1 : kernel / 2;
      const at::Tensor wanted = naive(q[0], k[0], v[0], [&](int64_t t, int64_t s) {
        return s >= t - left && s <= t - left + kernel - 1;
      });
      EXPECT_TRUE(at::allclose(got[0], wanted, 1e-5, 1e-6))
          << "kernel " << kernel << ", causal " << causal;
    }
  }
}

TEST(LocalAttention, DroppedProbabilitiesKeepTheirMean) {
  at::manual_seed(1);
  const at::Tensor q = at::randn({1, 6, 4}), k = at::randn({1, 6, 4}), v = at::randn({1, 6, 4});
  DropoutPlan evaluation;
  const at::Tensor wanted = local_attention(q, k, v, {}, evaluation);
  at::Tensor mean = at::zeros_like(wanted);
  const int draws = 4000;
  for (int draw = 0; draw < draws; ++draw) {
    DropoutPlan plan({1, static_cast<uint64_t>(draw), 0});
    mean += local_attention(q, k, v, {.dropout = 0.3}, plan) / draws;
  }
  EXPECT_TRUE(at::allclose(mean, wanted, 0, 0.06));
}

TEST(SelfAttentionModule, WindowedStepsKeepNoMoreThanTheyCanSee) {
  at::manual_seed(1);
  SelfAttention attention(
      SelfAttentionOptions{.channels = 8, .heads = 2, .kernel_size = 4, .causal = true});
  at::NoGradGuard no_grad;
  const at::Tensor x = at::randn({3, 11, 8});
  DropoutPlan plan;
  const at::Tensor wanted = attention->forward(x, {}, plan);
  AttentionState state = attention->initial_state(3);
  for (int64_t t = 0; t < 11; ++t) {
    const at::Tensor got = attention->step(x.narrow(1, t, 1), state, {});
    EXPECT_TRUE(at::allclose(got, wanted.narrow(1, t, 1), 1e-5, 1e-6));
    EXPECT_LE(state.kept(), 3);
    EXPECT_LE(state.keys.size(2), 8);  // twice what a step sees
  }
}

TEST(SelfAttentionModule, StatesGoOnAfterReordering) {
  at::manual_seed(1);
  SelfAttention attention(SelfAttentionOptions{.channels = 8, .heads = 2, .causal = true});
  at::NoGradGuard no_grad;
  const at::Tensor x = at::randn({2, 9, 8});
  const at::Tensor parents = at::tensor({1, 0, 1}, at::kLong);
  DropoutPlan plan;
  const at::Tensor wanted = attention->forward(at::index_select(x, 0, parents), {}, plan);
  MixerState state = attention->initial_state(2);
  auto& past = state.as<AttentionState>();
  for (int64_t t = 0; t < 5; ++t)
    attention->step(x.narrow(1, t, 1), past, {});
  state.reorder(parents);
  for (int64_t t = 5; t < 9; t += 2)  // in chunks of two
    EXPECT_TRUE(at::allclose(
        attention->step(at::index_select(x, 0, parents).narrow(1, t, 2), past, {}),
        wanted.narrow(1, t, 2),
        1e-5,
        1e-6));
}

TEST(CrossAttentionModule, PaddedSourcesAreNotSeen) {
  at::manual_seed(1);
  CrossAttention attention(CrossAttentionOptions{.channels = 8, .heads = 2});
  at::NoGradGuard no_grad;
  const at::Tensor x = at::randn({1, 5, 8});
  at::Tensor states = at::randn({1, 7, 8});
  DropoutPlan plan;
  const at::Tensor wanted =
      attention->forward(x, attention->memory(states.narrow(1, 0, 4), {}), plan);
  states.narrow(1, 4, 3).fill_(1e4);
  const at::Tensor got =
      attention->forward(x, attention->memory(states, at::tensor({int64_t{4}})), plan);
  EXPECT_TRUE(at::allclose(got, wanted, 1e-5, 1e-6));
}

}  // namespace
}  // namespace seqconv::internal
