#include "libtorch/backend/parameters.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <vector>

#include "base/elements.h"
#include "base/error.h"
#include "base/safetensors.h"
#include "libtorch/ops/device.h"
#include "model/stored_parameters.h"

namespace seqconv::internal {
namespace fs = std::filesystem;
namespace {

at::ScalarType scalar_type(const fs::path& file, const TensorView& view, const std::string& name) {
  switch (view.type) {
    case ElementType::kF64:
      return at::kDouble;
    case ElementType::kF32:
      return at::kFloat;
    case ElementType::kF16:
      return at::kHalf;
    case ElementType::kBF16:
      return at::kBFloat16;
    case ElementType::kI64:
    case ElementType::kI32:
    case ElementType::kI8:
    case ElementType::kU8:
      break;
  }
  fail(
      file.string(),
      ": parameter '",
      name,
      "' must be of a floating-point type, but is ",
      element_name(view.type));
}

TensorView view_of(const at::Tensor& tensor) {
  return {
      ElementType::kF32,
      tensor.sizes().vec(),
      {reinterpret_cast<const std::byte*>(tensor.const_data_ptr<float>()),
       static_cast<size_t>(tensor.numel()) * sizeof(float)}};
}

}  // namespace

void save_parameters(
    const fs::path& file,
    const torch::nn::Module& model,
    const std::map<std::string, std::string>& metadata) {
  std::map<std::string, TensorView> views;
  std::vector<at::Tensor> alive;
  for (const auto& item : model.named_parameters()) {
    alive.push_back(ops::to_host(item.value().detach()).contiguous());
    views[item.key()] = view_of(alive.back());
  }
  write_safetensors(file, views, metadata);
}

void load_parameters(const RootedPath& file, torch::nn::Module& model) {
  at::NoGradGuard no_grad;
  const SafetensorsReader reader(file);
  refuse_int8(reader, "LibTorch");
  std::vector<std::string> names;
  for (const auto& item : model.named_parameters()) {
    names.push_back(item.key());
    const TensorView& view = reader.at(item.key());
    at::Tensor parameter = item.value();
    SEQCONV_CHECK(
        parameter.sizes() == at::IntArrayRef(view.shape),
        file.string(),
        ": parameter '",
        item.key(),
        "' must have shape ",
        shape_text(parameter.sizes().vec()),
        ", but got ",
        shape_text(view.shape));
    // As float32: a float64 may be too large for it.
    const at::Tensor values = at::from_blob(
                                  const_cast<std::byte*>(view.data.data()),
                                  view.shape,
                                  scalar_type(file, view, item.key()))
                                  .to(at::kFloat);
    parameter.copy_(ops::to_device(values, parameter.device()));
    require_finite(
        count_not_finite(ElementType::kF32, view_of(values).data),
        concat(file.string(), ": parameter '", item.key(), "'"));
  }
  for (const auto& [name, view] : reader.tensors()) {
    SEQCONV_CHECK(
        std::find(names.begin(), names.end(), name) != names.end(),
        file.string(),
        ": the model has no parameter '",
        name,
        "'");
  }
}

}  // namespace seqconv::internal
