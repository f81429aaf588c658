#pragma once

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include <vector>

#include "libtorch/nn/state.h"

namespace seqconv::internal::testing {

/// Feeds x [N, T, C] in the given chunks through step(first, count, position)
/// -> [N, count, C].
template <class Step>
at::Tensor in_chunks(const std::vector<int64_t>& chunks, const Step& step) {
  std::vector<at::Tensor> parts;
  StepPosition position{.count = 0, .tensor = at::zeros({1}, at::kLong)};
  for (const int64_t count : chunks) {
    parts.push_back(step(position.count, count, position));
    position.count += count;
    position.tensor.fill_(position.count);
  }
  return at::cat(parts, 1);
}

/// Partitions of 11 positions: whole, single ones, and odd chunks.
inline std::vector<std::vector<int64_t>> partitions_of_eleven() {
  return {{11}, std::vector<int64_t>(11, 1), {4, 1, 6}, {2, 9}};
}

/// Fills a parameter of a module.
inline void set_parameter(
    const torch::nn::Module& module, const std::string& name, const at::Tensor& value) {
  at::NoGradGuard no_grad;
  const auto parameters = module.named_parameters();
  ASSERT_TRUE(parameters.contains(name)) << name;
  ASSERT_EQ(parameters[name].sizes(), value.sizes()) << name;
  at::Tensor(parameters[name]).copy_(value);
}

/// Every parameter drawn anew, so that none is zero.
inline void randomise(const torch::nn::Module& module) {
  at::NoGradGuard no_grad;
  for (const auto& item : module.named_parameters())
    at::Tensor(item.value()).normal_(0, 0.5);
}

}  // namespace seqconv::internal::testing
