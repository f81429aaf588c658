#include "libtorch/nn/flat_parameters.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "libtorch/nn/feed_forward.h"

namespace seqconv::internal {
namespace {

TEST(FlatParameters, ParametersAndGradientsBecomeViews) {
  FeedForward module(FeedForwardOptions{.channels = 5, .hidden = 7});
  const at::Tensor x = at::randn({2, 3, 5});
  DropoutPlan plan;
  const at::Tensor before = module->forward(x, {}, plan).detach().clone();
  FlatParameters flat(*module);
  EXPECT_EQ(flat.parameter_count(), 5 * 7 + 7 + 7 * 5 + 5);
  EXPECT_TRUE(at::equal(module->forward(x, {}, plan), before));
  for (const ParameterSlot& slot : flat.slots())
    EXPECT_EQ(slot.offset % 16, 0) << slot.name;

  module->forward(x, {}, plan).sum().backward();
  module->forward(x, {}, plan).sum().backward();  // accumulates in place
  for (const ParameterSlot& slot : flat.slots()) {
    const at::Tensor gradient = module->named_parameters()[slot.name].grad();
    const at::Tensor view = flat.gradients().narrow(0, slot.offset, slot.count);
    EXPECT_EQ(gradient.data_ptr(), view.data_ptr()) << slot.name;
    EXPECT_GT(view.abs().max().item<float>(), 0) << slot.name;
  }

  at::NoGradGuard no_grad;
  flat.values().zero_();
  EXPECT_EQ(module->forward(x, {}, plan).abs().max().item<float>(), 0);
}

}  // namespace
}  // namespace seqconv::internal
