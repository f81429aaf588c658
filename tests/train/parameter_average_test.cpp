#include "train/parameter_average.h"

#include <ATen/Parallel.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace seqconv::internal {
namespace {

/// The definition, from all parameters that there ever were.
std::vector<double> mean_by_definition(const std::vector<at::Tensor>& history, double decay) {
  const size_t count = static_cast<size_t>(history.front().numel());
  std::vector<double> mean(count, 0.0);
  double weights = 0;
  for (size_t n = 0; n < history.size(); ++n) {
    const double weight = std::pow(decay, static_cast<double>(history.size() - 1 - n));
    weights += weight;
    for (size_t i = 0; i < count; ++i)
      mean[i] += weight * history[n].const_data_ptr<float>()[i];
  }
  for (double& value : mean)
    value /= weights;
  return mean;
}

TEST(ParameterAverage, IsTheMeanOfItsDefinitionAfterEveryUpdate) {
  for (const double decay : {0.3, 0.9, 0.999, 0.9999999}) {
    const at::Tensor values = at::rand({37});
    ParameterAverage average({.decay = decay}, values);
    std::vector<at::Tensor> history;
    for (int64_t update = 1; update <= 60; ++update) {
      values.copy_(at::rand({37}));
      history.push_back(values.clone());
      average.add(update);
      const auto wanted = mean_by_definition(history, decay);
      for (size_t i = 0; i < wanted.size(); ++i)
        ASSERT_NEAR(
            average.values().const_data_ptr<float>()[i], wanted[i], 1e-6 * std::abs(wanted[i]))
            << "decay " << decay << " update " << update;
    }
  }
}

TEST(ParameterAverage, OfAShareIsThatOfTheLastUpdates) {
  const at::Tensor values = at::zeros({1});
  ParameterAverage average({.share = 0.1}, values);
  // The parameters of update i are i: the mean age is a share of all updates, about.
  for (int64_t update = 1; update <= 2000; ++update) {
    values.fill_(static_cast<float>(update));
    average.add(update);
    const double age = static_cast<double>(update) - average.values().item<double>();
    if (update <= 10) {
      ASSERT_EQ(age, 0) << update;
    }
    // By definition m(n) = m(n-1) + (p(n) - m(n-1)) / (share n): ages tend to share / (1 + share).
    if (update == 2000) {
      ASSERT_NEAR(age / 2000, 0.1 / 1.1, 0.002);
    }
  }
  at::Tensor again = at::zeros({1});
  ParameterAverage on_device({.share = 0.1}, again);
  for (int64_t update = 1; update <= 2000; ++update) {
    again.fill_(static_cast<float>(update));
    on_device.add_where(at::ones({}, at::kBool), at::full({}, update, at::kDouble));
  }
  EXPECT_NEAR(on_device.values().item<double>(), average.values().item<double>(), 0.05);
}

TEST(ParameterAverage, BeginsWithTheParametersOfTheFirstUpdateToTheBit) {
  const at::Tensor values = at::rand({5});
  ParameterAverage average({.decay = 0.99}, values);
  EXPECT_TRUE(average.values().equal(values));  // nothing better before it
  values.fill_(1e-20);
  values[2].fill_(-3e30);
  average.add(1);
  EXPECT_TRUE(average.values().equal(values));
}

TEST(ParameterAverage, ChangesPlacesWithTheParametersWhileItIsInUse) {
  const at::Tensor values = at::rand({5});
  ParameterAverage average({.decay = 0.5}, values);
  average.add(1);
  values.copy_(at::rand({5}));
  const at::Tensor parameters = values.clone();
  const at::Tensor mean = average.values().clone();
  {
    ParameterAverage::InUse in_use(average);
    EXPECT_TRUE(values.equal(mean));
    in_use.end();
    EXPECT_TRUE(values.equal(parameters));
    in_use.end();
    EXPECT_TRUE(values.equal(parameters));
  }
  {
    const ParameterAverage::InUse in_use(average);
    EXPECT_TRUE(average.values().equal(parameters));
  }
  EXPECT_TRUE(values.equal(parameters));
  EXPECT_TRUE(average.values().equal(mean));
}

TEST(ParameterAverage, IsNotKeptWithoutADecay) {
  const at::Tensor values = at::rand({5});
  const at::Tensor before = values.clone();
  ParameterAverage none({.decay = 0}, values);
  none.add(1);
  const ParameterAverage::InUse in_use(none);
  EXPECT_FALSE(none.is_kept());
  EXPECT_FALSE(none.values().defined());
  EXPECT_TRUE(values.equal(before));
}

TEST(ParameterAverage, HasTheSameBitsWithAnyNumberOfThreads) {
  const int threads = at::get_num_threads();
  std::vector<at::Tensor> means;
  for (const int number : {1, 3}) {
    at::set_num_threads(number);
    const at::Tensor values = at::zeros({300'001});
    ParameterAverage average({.decay = 0.9}, values);
    for (int64_t update = 1; update <= 3; ++update) {
      float* first = values.mutable_data_ptr<float>();
      for (int64_t i = 0; i < values.numel(); ++i)
        first[i] = std::sin(static_cast<float>(i * update));
      average.add(update);
    }
    means.push_back(average.values().clone());
  }
  at::set_num_threads(threads);
  EXPECT_TRUE(means[0].equal(means[1]));
}

}  // namespace
}  // namespace seqconv::internal
