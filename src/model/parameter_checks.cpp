#include <algorithm>

#include "base/elements.h"
#include "base/error.h"
#include "model/stored_parameters.h"

namespace seqconv::internal {
namespace {

std::string where(const SafetensorsReader& file, const std::string& name) {
  return concat(file.path().string(), ": parameter '", name, "'");
}

bool is_floating(ElementType type) {
  switch (type) {
    case ElementType::kF64:
    case ElementType::kF32:
    case ElementType::kF16:
    case ElementType::kBF16:
      return true;
    case ElementType::kI64:
    case ElementType::kI32:
    case ElementType::kI8:
    case ElementType::kU8:
      return false;
  }
  return false;
}

void check_shape(
    const SafetensorsReader& file, const std::string& name, const std::vector<int64_t>& wanted) {
  SEQCONV_CHECK(
      file.at(name).shape == wanted,
      where(file, name),
      " must have shape ",
      shape_text(wanted),
      ", but got ",
      shape_text(file.at(name).shape));
}

/// Floating-point, and finite as float32.
void check_numbers(const SafetensorsReader& file, const std::string& name) {
  const TensorView& view = file.at(name);
  SEQCONV_CHECK(
      is_floating(view.type),
      where(file, name),
      " must be of a floating-point type, but is ",
      element_name(view.type));
  if (view.type != ElementType::kF64)
    return require_finite(count_not_finite(view.type, view.data), where(file, name));
  const std::vector<float> narrow = to_floats(view.type, view.data);
  require_finite(
      count_not_finite(ElementType::kF32, std::as_bytes(std::span(narrow))), where(file, name));
}

/// The scales that whole numbers need.
void check_scales(
    const SafetensorsReader& file, const ParameterShape& matrix, const std::string& scale) {
  SEQCONV_CHECK(
      file.contains(scale),
      where(file, matrix.name),
      " is int8, but its scales '",
      scale,
      "' are missing");
  check_shape(file, scale, {matrix.shape[0]});
  check_numbers(file, scale);
}

}  // namespace

std::string scale_name(const std::string& matrix) {
  return matrix + ".scale";
}

void refuse_int8(const SafetensorsReader& parameters, const std::string& reader) {
  for (const auto& [name, view] : parameters.tensors())
    SEQCONV_CHECK(
        view.type != ElementType::kI8,
        where(parameters, name),
        " is int8 (seqconv quantize), which ",
        reader,
        " cannot use: take the model that it was made from");
}

void check_parameters(const SafetensorsReader& reader, const std::vector<ParameterShape>& wanted) {
  std::vector<std::string> names;
  for (const ParameterShape& parameter : wanted) {
    names.push_back(parameter.name);
    check_shape(reader, parameter.name, parameter.shape);
    if (!parameter.is_matrix || reader.at(parameter.name).type != ElementType::kI8) {
      check_numbers(reader, parameter.name);
      reader.release();  // never the whole file in memory
      continue;
    }
    names.push_back(scale_name(parameter.name));
    check_scales(reader, parameter, names.back());
  }
  if (reader.tensors().size() == names.size())
    return;
  std::sort(names.begin(), names.end());
  for (const auto& [name, view] : reader.tensors())
    SEQCONV_CHECK(
        std::binary_search(names.begin(), names.end(), name),
        reader.path().string(),
        ": the model has no parameter '",
        name,
        "'");
}

}  // namespace seqconv::internal
