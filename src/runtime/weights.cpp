#include "runtime/weights.h"

#include <cstring>

#include "base/elements.h"
#include "base/spare_threads.h"
#include "model/stored_parameters.h"

namespace seqconv::internal::runtime {
namespace {

using kernels::PackedLinear;
using kernels::WeightType;

const kernels::ParallelFor kSpareThreads = SpareThreads::loop;

/// The type that a file is of: int8 where a matrix is.
WeightType stored_type(const SafetensorsReader& file) {
  for (const auto& [name, view] : file.tensors())
    if (view.type == ElementType::kI8)
      return WeightType::kInt8;
  return WeightType::kFloat32;
}

float element(const TensorView& view, int64_t i) {
  float value;
  std::memcpy(&value, view.data.data() + static_cast<size_t>(i) * sizeof(value), sizeof(value));
  return value;
}

const int8_t* whole_numbers(const TensorView& view) {
  return reinterpret_cast<const int8_t*>(view.data.data());
}

/// Row `n` of a matrix of int8 as float32.
void copy_int8_row(const TensorView& view, const TensorView& scales, int64_t n, float* out) {
  const int64_t width = view.shape[1];
  const int8_t* const row = whole_numbers(view) + n * width;
  const float scale = element(scales, n);
  for (int64_t i = 0; i < width; ++i)
    out[i] = static_cast<float>(row[i]) * scale;
}

}  // namespace

const kernels::ParallelFor& threads() {
  return kSpareThreads;
}

void Table::copy_row(int64_t id, float* out) const {
  if (scales_ != nullptr)
    return copy_int8_row(*view_, *scales_, id, out);
  const auto width = static_cast<size_t>(view_->shape[1]);
  const size_t bytes = width * element_size(view_->type);
  copy_floats(
      view_->type, view_->data.subspan(static_cast<size_t>(id) * bytes, bytes), {out, width});
}

Weights::Weights(const ModelToRun& model, Task task, ComputeType compute)
    : file_(std::make_shared<const SafetensorsReader>(model.parameters)) {
  check_vocabulary(model.options, task, model.vocabulary);
  check_parameters(*file_, list_parameters(model.options, task, model.vocabulary));
  type_ = weight_type(compute, stored_type(*file_));
}

Weights::~Weights() {
  file_->release();
}

PackedLinear Weights::pack(const float* weight, int64_t outputs, int64_t inputs, bool gated) const {
  const bool fits = type_ != WeightType::kInt8 || inputs < kernels::kMostInt8Inputs;
  return counted({weight, outputs, inputs, gated, fits ? type_ : WeightType::kFloat32});
}

std::vector<float> Weights::numbers(const std::string& name) const {
  const TensorView& view = file_->at(name);
  if (view.type != ElementType::kI8)
    return to_floats(view.type, view.data);
  std::vector<float> values(static_cast<size_t>(view.count()));
  const TensorView& scales = file_->at(scale_name(name));
  for (int64_t n = 0; n < view.shape[0]; ++n)
    copy_int8_row(view, scales, n, values.data() + n * view.shape[1]);
  return values;
}

Table Weights::table(const std::string& name) const {
  const TensorView& view = file_->at(name);
  return {file_, &view, view.type == ElementType::kI8 ? &file_->at(scale_name(name)) : nullptr};
}

PackedLinear Weights::packed(const std::string& name, bool gated) const {
  const TensorView& view = file_->at(name);
  const int64_t N = view.shape[0], K = view.shape[1];
  if (view.type != ElementType::kI8 || type_ != WeightType::kInt8)
    return pack(numbers(name).data(), N, K, gated);
  const std::vector<float> scales = numbers(scale_name(name));
  return counted({{whole_numbers(view), scales.data()}, N, K, gated});
}

PackedLinear Weights::counted(PackedLinear made) const {
  bytes_ += made.bytes();
  return made;
}

/// A packed matrix is not read again: file and packed weights are never in
/// memory together.
Linear Weights::linear_of(PackedLinear packed, std::vector<float> bias) const {
  file_->release();
  return {std::move(packed), std::move(bias)};
}

Linear Weights::matrix(const std::string& name) const {
  return linear_of(packed(name, /*gated=*/false), {});
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
  return linear_of(pack(columns.data(), sizes[1], sizes[0]), {});
}

Linear Weights::linear(const std::string& name, bool gated) const {
  return linear_of(packed(name + ".weight", gated), numbers(name + ".bias"));
}

}  // namespace seqconv::internal::runtime
