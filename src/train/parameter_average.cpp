#include "train/parameter_average.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/expm1.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "libtorch/ops/parallel.h"

namespace seqconv::internal {
namespace {

/// Fewer parameters are not worth a thread.
constexpr int64_t kParametersAtATime = 1 << 16;

}  // namespace

double AverageOptions::weight_of(int64_t n) const {
  const auto count = static_cast<double>(n);
  if (share > 0)
    return std::min(1.0, 1 / (share * count));
  return (1 - decay) / -std::expm1(count * std::log(decay));
}

ParameterAverage::ParameterAverage(
    AverageOptions options, const at::Tensor& values, FlatShares shares)
    : options_(options),
      shares_(std::move(shares)),
      all_values_(values),
      values_(shares_.own(values)) {
  if (options.is_kept())
    average_ = values_.clone();
}

void ParameterAverage::add(int64_t updates) {
  if (!is_kept())
    return;
  const float* values = values_.const_data_ptr<float>();
  float* average = average_.mutable_data_ptr<float>();
  if (updates <= 1) {
    std::copy_n(values, values_.numel(), average);
    return;
  }
  const double weight = options_.weight_of(updates);
  ops::parallel_for()(values_.numel(), kParametersAtATime, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const double mean = average[i];
      average[i] = static_cast<float>(mean + weight * (values[i] - mean));
    }
  });
}

void ParameterAverage::add_where(const at::Tensor& keep, const at::Tensor& updates) {
  if (!is_kept())
    return;
  const at::Tensor weight = options_.share > 0
      ? (updates * options_.share).reciprocal().clamp_max(1.0)
      : at::expm1(updates * std::log(options_.decay)).reciprocal() * (options_.decay - 1);
  // Values that are not finite must not meet even a weight of 0.
  average_.lerp_(
      at::where(keep, values_, average_),
      at::where(keep, at::where(updates.le(1), 1.0, weight), 0.0).to(at::kFloat));
}

void ParameterAverage::exchange() {
  if (!values_.is_cpu()) {
    const at::Tensor values = values_.clone();
    values_.copy_(average_);
    average_.copy_(values);
    return;
  }
  float* values = values_.mutable_data_ptr<float>();
  std::swap_ranges(values, values + values_.numel(), average_.mutable_data_ptr<float>());
}

ParameterAverage::InUse::InUse(ParameterAverage& average)
    : average_(average.is_kept() ? &average : nullptr) {
  if (average_ == nullptr)
    return;
  average_->exchange();
  average_->shares_.share(average_->all_values_);
}

ParameterAverage::InUse::~InUse() {
  if (average_ != nullptr)
    average_->exchange();
}

void ParameterAverage::InUse::end() {
  if (average_ == nullptr)
    return;
  ParameterAverage& average = *std::exchange(average_, nullptr);
  average.exchange();
  average.shares_.share(average.all_values_);
}

}  // namespace seqconv::internal
