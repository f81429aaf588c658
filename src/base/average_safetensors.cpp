#include "seqconv/base/average_safetensors.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <deque>

#include "seqconv/base/error.h"
#include "seqconv/base/safetensors.h"

namespace seqconv {
namespace {

template <class T>
T load(const std::byte* data, int64_t index) {
  T value;
  std::memcpy(&value, data + index * sizeof(T), sizeof(T));
  return value;
}

double half_to_double(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == 31)
    return fraction ? NAN : sign * INFINITY;
  if (exponent == 0)
    return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(fraction + 1024, exponent - 25);
}

double bfloat_to_double(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

template <class Convert>
void add(std::vector<double>& sums, const Convert& convert) {
  for (size_t i = 0; i < sums.size(); ++i)
    sums[i] += convert(static_cast<int64_t>(i));
}

void add_tensor(
    std::vector<double>& sums,
    const TensorView& view,
    const std::string& where) {
  const std::byte* data = view.data.data();
  switch (view.type) {
    case ElementType::kF64:
      return add(sums, [&](int64_t i) { return load<double>(data, i); });
    case ElementType::kF32:
      return add(sums, [&](int64_t i) { return load<float>(data, i); });
    case ElementType::kF16:
      return add(sums, [&](int64_t i) {
        return half_to_double(load<uint16_t>(data, i));
      });
    case ElementType::kBF16:
      return add(sums, [&](int64_t i) {
        return bfloat_to_double(load<uint16_t>(data, i));
      });
    case ElementType::kI64:
    case ElementType::kI32:
    case ElementType::kU8:
      break;
  }
  fail(
      where,
      ": only floating-point tensors can be averaged, but this one is ",
      element_name(view.type));
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += concat(i ? ", " : "", shape[i]);
  return text + "]";
}

void check_same_tensors(
    const SafetensorsReader& first,
    const SafetensorsReader& other) {
  for (const auto& [name, view] : first.tensors()) {
    const TensorView& twin = other.at(name);
    SEQCONV_CHECK(
        twin.shape == view.shape,
        other.path().string(),
        ": tensor '",
        name,
        "' must have shape ",
        shape_text(view.shape),
        " as in ",
        first.path().string(),
        ", but has ",
        shape_text(twin.shape));
  }
  for (const auto& [name, view] : other.tensors())
    SEQCONV_CHECK(
        first.contains(name),
        other.path().string(),
        ": tensor '",
        name,
        "' is not in ",
        first.path().string());
}

std::vector<float> mean_of(
    const std::string& name,
    const std::deque<SafetensorsReader>& readers) {
  const int64_t count = readers.front().at(name).count();
  std::vector<double> sums(static_cast<size_t>(count), 0.0);
  for (const SafetensorsReader& reader : readers)
    add_tensor(
        sums,
        reader.at(name),
        concat(reader.path().string(), ": tensor '", name, "'"));
  std::vector<float> mean(sums.size());
  for (size_t i = 0; i < sums.size(); ++i)
    mean[i] = static_cast<float>(sums[i] / static_cast<double>(readers.size()));
  return mean;
}

}  // namespace

void average_safetensors(
    const std::vector<std::filesystem::path>& files,
    const std::filesystem::path& output,
    const std::map<std::string, std::string>& metadata) {
  SEQCONV_CHECK(!files.empty(), "averaging needs at least one checkpoint");
  std::deque<SafetensorsReader> readers;
  for (const auto& file : files)
    readers.emplace_back(file);
  for (const SafetensorsReader& reader : readers)
    check_same_tensors(readers.front(), reader);
  std::map<std::string, std::vector<float>> means;
  std::map<std::string, TensorView> views;
  for (const auto& [name, view] : readers.front().tensors()) {
    const std::vector<float>& mean = means[name] = mean_of(name, readers);
    views[name] = {
        ElementType::kF32,
        view.shape,
        std::as_bytes(std::span<const float>(mean))};
  }
  write_safetensors(output, views, metadata);
}

}  // namespace seqconv
