#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/safetensors.h"

/// Numbers in somebody else's memory, of any floating-point type and at any
/// byte.
namespace seqconv::internal {

/// Adds the elements that `bytes` hold to `sums`, as many as those are; Error,
/// beginning with `where`, for a type that is not floating-point.
void add_elements(
    ElementType type,
    std::span<const std::byte> bytes,
    std::span<double> sums,
    const std::string& where);

/// The elements as float32, to which numbers of another type are rounded; the
/// same Error. `out` has as many places as there are.
void copy_floats(ElementType type, std::span<const std::byte> bytes, std::span<float> out);
std::vector<float> to_floats(ElementType type, std::span<const std::byte> bytes);

/// The mean of tensors out of their sum and the sum of their weights, as
/// float32.
std::vector<float> mean_of(std::span<const double> sums, double weights);

/// Counts the elements that are NaN or infinite; 0 for whole numbers.
size_t count_not_finite(ElementType type, std::span<const std::byte> bytes);

/// Error, beginning with `where` (file and tensor), unless `not_finite`, which
/// count_not_finite gave, is 0: a model with such a number can say nothing.
void require_finite(size_t not_finite, const std::string& where);

/// The same for every tensor of a file, which it names.
void require_finite(const SafetensorsReader& reader);

}  // namespace seqconv::internal
