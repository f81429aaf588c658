#include "seqconv/nn/init.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>

#include <cmath>

namespace seqconv {

at::Generator make_generator(uint64_t seed) {
  return at::make_generator<at::CPUGeneratorImpl>(seed);
}

at::Tensor
uniform(at::IntArrayRef shape, double bound, const InitGenerator& generator) {
  return at::empty(shape, at::kFloat).uniform_(-bound, bound, generator);
}

at::Tensor normal(
    at::IntArrayRef shape,
    double deviation,
    const InitGenerator& generator) {
  return at::empty(shape, at::kFloat).normal_(0, deviation, generator);
}

at::Tensor xavier_uniform(
    at::IntArrayRef shape,
    int64_t fan_in,
    int64_t fan_out,
    const InitGenerator& generator,
    double gain) {
  const double bound =
      gain * std::sqrt(6.0 / static_cast<double>(fan_in + fan_out));
  return uniform(shape, bound, generator);
}

}  // namespace seqconv
