#include "seqconv/nn/init.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>

#include <cmath>

namespace seqconv {

InitGenerator make_generator(std::optional<uint64_t> seed) {
  if (!seed)
    return {.draws = false};
  return {.generator = at::make_generator<at::CPUGeneratorImpl>(*seed)};
}

at::Tensor
uniform(at::IntArrayRef shape, double bound, const InitGenerator& generator) {
  at::Tensor weight = at::empty(shape, at::kFloat);
  return generator.draws ? weight.uniform_(-bound, bound, generator.generator)
                         : weight;
}

at::Tensor normal(
    at::IntArrayRef shape,
    double deviation,
    const InitGenerator& generator) {
  at::Tensor weight = at::empty(shape, at::kFloat);
  return generator.draws ? weight.normal_(0, deviation, generator.generator)
                         : weight;
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
