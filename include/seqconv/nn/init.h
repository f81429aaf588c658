#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace seqconv {

/// Where initial weights are drawn from; empty: torch's global generator.
using InitGenerator = std::optional<at::Generator>;

/// A generator whose numbers are a function of `seed` alone.
at::Generator make_generator(uint64_t seed);

/// Xavier-uniform U(-b, b), b = gain * sqrt(6 / (fan_in + fan_out)), float32.
at::Tensor xavier_uniform(
    at::IntArrayRef shape,
    int64_t fan_in,
    int64_t fan_out,
    const InitGenerator& generator,
    double gain = 1.0);

/// U(-bound, bound), float32.
at::Tensor
uniform(at::IntArrayRef shape, double bound, const InitGenerator& generator);

/// N(0, deviation^2), float32.
at::Tensor
normal(at::IntArrayRef shape, double deviation, const InitGenerator& generator);

}  // namespace seqconv
