#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace seqconv::internal {

/// Says where initial weights come from.
struct InitGenerator {
  /// Empty: torch's global generator.
  std::optional<at::Generator> generator{};
  /// False: nothing is drawn. Weights are then whatever the memory held, for a
  /// model whose parameters are read from a file next.
  bool draws = true;
  /// The device on which parameters are born. Numbers are drawn on the host:
  /// they are the same for every device.
  at::Device device = at::kCPU;
};

/// A generator whose numbers are a function of `seed` alone; without one,
/// nothing is drawn.
InitGenerator make_generator(std::optional<uint64_t> seed, at::Device device = at::kCPU);

/// [size] float32 of one value, as biases and gains begin.
at::Tensor constant(int64_t size, double value, const InitGenerator& generator);

/// Xavier-uniform U(-b, b), b = gain * sqrt(6 / (fan_in + fan_out)), float32.
at::Tensor xavier_uniform(
    at::IntArrayRef shape,
    int64_t fan_in,
    int64_t fan_out,
    const InitGenerator& generator,
    double gain = 1.0);

/// U(-bound, bound), float32.
at::Tensor uniform(at::IntArrayRef shape, double bound, const InitGenerator& generator);

/// N(0, deviation^2), float32.
at::Tensor normal(at::IntArrayRef shape, double deviation, const InitGenerator& generator);

}  // namespace seqconv::internal
