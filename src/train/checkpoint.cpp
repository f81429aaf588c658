#include "train/checkpoint.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>

#include "base/elements.h"
#include "base/options.h"
#include "base/safetensors.h"
#include "libtorch/ops/device.h"

namespace seqconv::internal {
namespace fs = std::filesystem;
namespace {

constexpr const char* kParameters = "parameters";
constexpr const char* kGradients = "gradients";
constexpr const char* kAverage = "average";
const std::string kOptimizer = "optimizer.";  // + name

using Buffers = std::map<std::string, at::Tensor>;  // by names in the file

/// The flat buffers that every process has whole.
Buffers whole_buffers(const RunTensors& tensors, bool with_gradients) {
  Buffers buffers;
  buffers[kParameters] = tensors.parameters.values();
  if (with_gradients)
    buffers[kGradients] = tensors.parameters.gradients();
  return buffers;
}

/// Those of which a process may have but its share.
Buffers shared_out_buffers(const RunTensors& tensors) {
  Buffers buffers;
  if (tensors.average.defined())
    buffers[kAverage] = tensors.average;
  for (const auto& [name, tensor] : tensors.optimizer.tensors())
    buffers[kOptimizer + name] = tensor;
  return buffers;
}

/// All of them whole, in the process that collects them.
Buffers collect_buffers(const RunTensors& tensors, bool with_gradients) {
  Buffers buffers = whole_buffers(tensors, with_gradients);
  for (const auto& [name, own] : shared_out_buffers(tensors))
    buffers[name] = tensors.shares.collect(own);
  return buffers;
}

/// Which parameter lies where, as one line.
std::string layout_of(const FlatParameters& parameters) {
  Json layout = Json::array();
  for (const ParameterSlot& slot : parameters.slots())
    layout.push_back({slot.name, slot.shape, slot.offset});
  return layout.dump();
}

size_t count_negative(const at::Tensor& values) {
  const float* first = values.const_data_ptr<float>();
  return static_cast<size_t>(
      std::count_if(first, first + values.numel(), [](float value) { return value < 0; }));
}

/// The first parameter for which `buffer`, which begins with element `begin` of
/// all, holds unsound numbers; `name` is the buffer's, "" for that of the
/// parameters themselves.
std::optional<UnsoundTensor> find_unsound_in(
    const at::Tensor& buffer,
    int64_t begin,
    const FlatParameters& parameters,
    const std::string& name) {
  const bool squares = name == kOptimizer + Optimizer::kSecondMoment;
  const at::Tensor here = ops::to_host(buffer);
  const int64_t end = begin + buffer.numel();
  for (const ParameterSlot& slot : parameters.slots()) {
    const int64_t first = std::max(slot.offset, begin);
    const int64_t last = std::min(slot.offset + slot.count, end);
    if (first >= last)
      continue;
    const at::Tensor values = here.narrow(0, first - begin, last - first);
    UnsoundTensor found;
    found.not_finite = count_not_finite(ElementType::kF32, bytes_of(values));
    found.negative = squares ? count_negative(values) : 0;
    if (found.not_finite + found.negative == 0)
      continue;
    const std::string parameter = concat("parameter '", slot.name, "'");
    found.name = name.empty() ? parameter : concat(name, " of ", parameter);
    return found;
  }
  return std::nullopt;
}

void check_sound(const fs::path& file, const RunTensors& tensors) {
  const auto unsound = find_unsound(tensors);
  if (!unsound)
    return;
  const std::string where = concat(file.string(), ": ", unsound->name);
  require_finite(unsound->not_finite, where);
  fail(
      where,
      " must hold squares, but ",
      unsound->negative,
      unsound->negative == 1 ? " of them is" : " of them are",
      " below 0: the file is damaged");
}

/// Fills `buffer` with the numbers of the file's tensor from `begin` on.
void take_numbers(
    const SafetensorsReader& reader,
    const std::string& name,
    int64_t begin,
    const RunTensors& tensors,
    const at::Tensor& buffer) {
  const TensorView& view = reader.at(name);
  const int64_t count = tensors.parameters.values().numel();
  SEQCONV_CHECK(
      view.type == ElementType::kF32 && view.count() == count,
      reader.path().string(),
      ": tensor '",
      name,
      "' must have ",
      count,
      " float32 elements, but has ",
      view.count(),
      " of ",
      element_name(view.type));
  const auto offset = static_cast<size_t>(begin) * sizeof(float);
  const at::Tensor values = at::from_blob(
      const_cast<std::byte*>(view.data.subspan(offset).data()), {buffer.numel()}, at::kFloat);
  buffer.copy_(ops::to_device(values, buffer.device()));
}

}  // namespace

std::span<const std::byte> bytes_of(const at::Tensor& tensor) {
  return {
      reinterpret_cast<const std::byte*>(tensor.const_data_ptr<float>()),
      static_cast<size_t>(tensor.numel()) * sizeof(float)};
}

void save_state(
    const fs::path& file,
    const Position& position,
    const Json& settings,
    const RunTensors& tensors) {
  std::map<std::string, TensorView> views;
  Buffers buffers = collect_buffers(tensors, position.micro_batch > 0);
  if (!tensors.shares.collects())
    return;
  for (auto& [name, tensor] : buffers) {
    tensor = ops::to_host(tensor);
    views[name] = {ElementType::kF32, {tensor.numel()}, bytes_of(tensor)};
  }
  std::map<std::string, std::string> metadata = {
      {"format", state_format()},
      {"position", write_options(position).dump()},
      {"settings", settings.dump()},
      {"layout", layout_of(tensors.parameters)}};
  metadata["checksum"] = state_checksum(views, metadata);
  write_safetensors(file, views, metadata);
}

std::optional<UnsoundTensor> find_unsound(const RunTensors& tensors) {
  const FlatParameters& parameters = tensors.parameters;
  const int64_t begin = tensors.shares.begin();
  if (auto found = find_unsound_in(parameters.values(), 0, parameters, ""))
    return found;
  for (const auto& [name, tensor] : tensors.optimizer.tensors())
    if (auto found = find_unsound_in(tensor, begin, parameters, kOptimizer + name))
      return found;
  if (tensors.average.defined())
    return find_unsound_in(tensors.average, begin, parameters, kAverage);
  return std::nullopt;
}

void load_state_tensors(
    const RootedPath& file, const Position& position, const RunTensors& tensors) {
  const SafetensorsReader reader(file);
  SEQCONV_CHECK(
      state_metadata(reader, "layout") == layout_of(tensors.parameters),
      file.string(),
      ": the training state belongs to a model with other parameters");
  const bool accumulating = position.micro_batch > 0;
  for (const auto& [name, whole] : whole_buffers(tensors, accumulating))
    take_numbers(reader, name, 0, tensors, whole);
  for (const auto& [name, own] : shared_out_buffers(tensors))
    take_numbers(reader, name, tensors.shares.begin(), tensors, own);
  check_sound(file, tensors);
  tensors.optimizer.scalars() = position.optimizer;
}

}  // namespace seqconv::internal
