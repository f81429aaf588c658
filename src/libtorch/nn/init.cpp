#include "libtorch/nn/init.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <cmath>

#include "libtorch/ops/device.h"

namespace seqconv::internal {

namespace {

/// A new weight into which draw(weight) puts its numbers.
template <class Draw>
at::Tensor draw_weight(at::IntArrayRef shape, const InitGenerator& generator, const Draw& draw) {
  if (!generator.draws)
    return at::empty(shape, at::dtype(at::kFloat).device(generator.device));
  at::Tensor weight = at::empty(shape, at::kFloat);
  draw(weight);
  return ops::to_device(weight, generator.device);
}

}  // namespace

InitGenerator make_generator(std::optional<uint64_t> seed, at::Device device) {
  if (!seed)
    return {.draws = false, .device = device};
  return {.generator = at::make_generator<at::CPUGeneratorImpl>(*seed), .device = device};
}

at::Tensor uniform(at::IntArrayRef shape, double bound, const InitGenerator& generator) {
  return draw_weight(shape, generator, [&](at::Tensor& weight) {
    weight.uniform_(-bound, bound, generator.generator);
  });
}

at::Tensor normal(at::IntArrayRef shape, double deviation, const InitGenerator& generator) {
  return draw_weight(shape, generator, [&](at::Tensor& weight) {
    weight.normal_(0, deviation, generator.generator);
  });
}

at::Tensor constant(int64_t size, double value, const InitGenerator& generator) {
  return at::full({size}, value, at::dtype(at::kFloat).device(generator.device));
}

at::Tensor xavier_uniform(
    at::IntArrayRef shape,
    int64_t fan_in,
    int64_t fan_out,
    const InitGenerator& generator,
    double gain) {
  const double bound = gain * std::sqrt(6.0 / static_cast<double>(fan_in + fan_out));
  return uniform(shape, bound, generator);
}

}  // namespace seqconv::internal
