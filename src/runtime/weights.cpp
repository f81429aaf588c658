#include "weights.h"

#include <cstring>

#include "seqconv/base/elements.h"
#include "seqconv/base/error.h"

namespace seqconv::runtime {
namespace {

/// As float32: a number of another type may be too large for it.
void to_float(
    ElementType type,
    std::span<const std::byte> bytes,
    std::span<float> out) {
  if (type == ElementType::kF32) {
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return;
  }
  std::vector<double> wide(out.size());
  add_elements(type, bytes, wide, "");
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<float>(wide[i]);
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
    case ElementType::kU8:
      return false;
  }
  return false;
}

std::span<const std::byte> bytes_of(std::span<const float> values) {
  return std::as_bytes(values);
}

void check_parameter(
    const SafetensorsReader& file,
    const ParameterShape& wanted) {
  const TensorView& view = file.at(wanted.name);
  const std::string where =
      concat(file.path().string(), ": parameter '", wanted.name, "'");
  SEQCONV_CHECK(
      view.shape == wanted.shape,
      where,
      " must have shape ",
      shape_text(wanted.shape),
      ", but got ",
      shape_text(view.shape));
  SEQCONV_CHECK(
      is_floating(view.type),
      where,
      " must be of a floating-point type, but is ",
      element_name(view.type));
  if (view.type != ElementType::kF64)
    return require_finite(count_not_finite(view.type, view.data), where);
  std::vector<float> narrow(static_cast<size_t>(view.count()));
  to_float(view.type, view.data, narrow);
  require_finite(count_not_finite(ElementType::kF32, bytes_of(narrow)), where);
}

}  // namespace

void Table::copy_row(int64_t id, float* out) const {
  const auto width = static_cast<size_t>(view_->shape[1]);
  const size_t bytes = width * element_size(view_->type);
  to_float(
      view_->type,
      view_->data.subspan(static_cast<size_t>(id) * bytes, bytes),
      {out, width});
}

Weights::Weights(const ModelToRun& model, Task task)
    : file_(std::make_shared<const SafetensorsReader>(model.parameters)) {
  check_vocabulary(model.options, task, model.vocabulary);
  const std::vector<ParameterShape> wanted =
      list_parameters(model.options, task, model.vocabulary);
  for (const ParameterShape& parameter : wanted)
    check_parameter(*file_, parameter);
  if (file_->tensors().size() == wanted.size())
    return;
  for (const auto& [name, view] : file_->tensors()) {
    const bool known =
        std::any_of(wanted.begin(), wanted.end(), [&](const auto& parameter) {
          return parameter.name == name;
        });
    SEQCONV_CHECK(
        known,
        file_->path().string(),
        ": the model has no parameter '",
        name,
        "'");
  }
}

std::vector<float> Weights::numbers(const std::string& name) const {
  const TensorView& view = file_->at(name);
  std::vector<float> values(static_cast<size_t>(view.count()));
  to_float(view.type, view.data, values);
  return values;
}

Table Weights::table(const std::string& name) const {
  return {file_, &file_->at(name)};
}

Linear Weights::matrix(const std::string& name) const {
  const std::vector<int64_t>& sizes = shape(name);
  return {kernels::PackedLinear(numbers(name).data(), sizes[0], sizes[1]), {}};
}

Linear Weights::transposed(const std::string& name) const {
  const std::vector<int64_t>& sizes = shape(name);
  const std::vector<float> rows = numbers(name);
  std::vector<float> columns(rows.size());
  const auto K = static_cast<size_t>(sizes[0]);
  const auto N = static_cast<size_t>(sizes[1]);
  for (size_t k = 0; k < K; ++k)
    for (size_t n = 0; n < N; ++n)
      columns[n * K + k] = rows[k * N + n];
  return {kernels::PackedLinear(columns.data(), sizes[1], sizes[0]), {}};
}

Linear Weights::linear(const std::string& name, bool gated) const {
  const std::vector<int64_t>& sizes = shape(name + ".weight");
  return {
      kernels::PackedLinear(
          numbers(name + ".weight").data(),
          sizes[0],
          sizes[1],
          gated),
      numbers(name + ".bias")};
}

}  // namespace seqconv::runtime
