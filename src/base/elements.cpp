#include "base/elements.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/error.h"

namespace seqconv::internal {
namespace {

template <class T>
T load(std::span<const std::byte> bytes, size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

/// A float16's exponent and fraction, read as those of a float32, are too small
/// by 2^112; subnormal numbers come out right too.
double half_to_double(uint16_t bits) {
  const uint32_t magnitude = bits & 0x7FFF;
  const float sign = bits & 0x8000 ? -1 : 1;
  if (magnitude >= 0x7C00)
    return magnitude > 0x7C00 ? NAN : sign * INFINITY;
  return sign * std::bit_cast<float>(magnitude << 13) * 0x1p112f;
}

double bfloat_to_double(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

template <class Convert>
void add(std::span<double> sums, const Convert& convert) {
  for (size_t i = 0; i < sums.size(); ++i)
    sums[i] += convert(i);
}

constexpr size_t kElementsAtATime = 4096;

/// Elements with all bits of the exponent set. Blocks without any, which all of
/// a sound model are, are passed by an and, an add and an or an element: adding
/// its lowest bit to a full exponent carries into the sign.
template <class Bits>
size_t count_full(std::span<const std::byte> bytes, Bits exponent) {
  const Bits lowest = exponent & static_cast<Bits>(~exponent + 1);
  const size_t all = bytes.size() / sizeof(Bits);
  size_t count = 0;
  for (size_t begin = 0; begin < all; begin += kElementsAtATime) {
    const size_t end = std::min(begin + kElementsAtATime, all);
    Bits carried = 0;
    for (size_t i = begin; i < end; ++i)
      carried |= static_cast<Bits>((load<Bits>(bytes, i) & exponent) + lowest);
    if (carried >> (8 * sizeof(Bits) - 1) == 0)
      continue;
    for (size_t i = begin; i < end; ++i)
      count += (load<Bits>(bytes, i) & exponent) == exponent;
  }
  return count;
}

}  // namespace

void add_elements(
    ElementType type,
    std::span<const std::byte> bytes,
    std::span<double> sums,
    const std::string& where) {
  switch (type) {
    case ElementType::kF64:
      return add(sums, [&](size_t i) { return load<double>(bytes, i); });
    case ElementType::kF32:
      return add(sums, [&](size_t i) { return load<float>(bytes, i); });
    case ElementType::kF16:
      return add(sums, [&](size_t i) { return half_to_double(load<uint16_t>(bytes, i)); });
    case ElementType::kBF16:
      return add(sums, [&](size_t i) { return bfloat_to_double(load<uint16_t>(bytes, i)); });
    case ElementType::kI64:
    case ElementType::kI32:
    case ElementType::kI8:
    case ElementType::kU8:
      break;
  }
  fail(
      where, ": only floating-point tensors can be averaged, but this one is ", element_name(type));
}

void copy_floats(ElementType type, std::span<const std::byte> bytes, std::span<float> out) {
  if (type == ElementType::kF32) {
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return;
  }
  std::vector<double> wide(out.size());
  add_elements(type, bytes, wide, "a tensor");
  std::transform(wide.begin(), wide.end(), out.begin(), [](double value) {
    return static_cast<float>(value);
  });
}

std::vector<float> to_floats(ElementType type, std::span<const std::byte> bytes) {
  std::vector<float> values(bytes.size() / element_size(type));
  copy_floats(type, bytes, values);
  return values;
}

std::vector<float> mean_of(std::span<const double> sums, double weights) {
  std::vector<float> mean(sums.size());
  for (size_t i = 0; i < sums.size(); ++i)
    mean[i] = static_cast<float>(sums[i] / weights);
  return mean;
}

size_t count_not_finite(ElementType type, std::span<const std::byte> bytes) {
  switch (type) {
    case ElementType::kF64:
      return count_full<uint64_t>(bytes, uint64_t{0x7FF} << 52);
    case ElementType::kF32:
      return count_full<uint32_t>(bytes, 0x7F800000);
    case ElementType::kF16:
      return count_full<uint16_t>(bytes, 0x7C00);
    case ElementType::kBF16:
      return count_full<uint16_t>(bytes, 0x7F80);
    case ElementType::kI64:
    case ElementType::kI32:
    case ElementType::kI8:
    case ElementType::kU8:
      break;
  }
  return 0;
}

void require_finite(size_t not_finite, const std::string& where) {
  SEQCONV_CHECK(
      not_finite == 0,
      where,
      " must hold finite numbers, but ",
      not_finite,
      not_finite == 1 ? " of them is" : " of them are",
      " NaN or infinite: the training diverged, or the file is damaged");
}

void require_finite(const SafetensorsReader& reader) {
  for (const auto& [name, view] : reader.tensors())
    require_finite(
        count_not_finite(view.type, view.data),
        concat(reader.path().string(), ": tensor '", name, "'"));
}

}  // namespace seqconv::internal
