#include "checkpoint.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <string_view>

#include "seqconv/base/checksum.h"
#include "seqconv/base/elements.h"
#include "seqconv/base/options.h"
#include "seqconv/base/safetensors.h"
#include "seqconv/ops/device.h"

namespace seqconv {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kFormat = "seqconv-training-state-";  // + version
constexpr const char* kParameters = "parameters";
constexpr const char* kGradients = "gradients";
constexpr const char* kAverage = "average";
constexpr const char* kChecksum = "checksum";
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

using Metadata = std::map<std::string, std::string>;

/// Over the tensors and all metadata but the checksum itself.
std::string checksum_of(
    const std::map<std::string, TensorView>& views,
    const Metadata& metadata) {
  uint64_t sum = 0;
  for (const auto& [key, value] : metadata)
    if (key != kChecksum)
      sum = checksum(std::as_bytes(std::span(value)), sum);
  for (const auto& [name, view] : views)
    sum = checksum(view.data, sum);
  return checksum_text(sum);
}

const std::string& metadata_at(
    const SafetensorsReader& reader,
    const char* key) {
  const auto found = reader.metadata().find(key);
  SEQCONV_CHECK(
      found != reader.metadata().end(),
      reader.path().string(),
      ": not a training state, its metadata lack '",
      key,
      "'");
  return found->second;
}

Json parse_metadata(const SafetensorsReader& reader, const char* key) {
  try {
    return Json::parse(metadata_at(reader, key));
  } catch (const Json::exception& error) {
    fail(
        reader.path().string(),
        ": metadata '",
        key,
        "' are damaged: ",
        error.what());
  }
}

/// Error for a file that is no state, or one of another version.
void check_version(const SafetensorsReader& reader) {
  const std::string& format = metadata_at(reader, "format");
  const std::string wanted = concat(kFormat, kStateVersion);
  SEQCONV_CHECK(
      format == wanted,
      reader.path().string(),
      ": this program reads training states of format '",
      wanted,
      "', but got '",
      format,
      format.starts_with(kFormat)
          ? "': another version of seqconv wrote it; resume with that one, or "
            "start another run from the model with --init-from"
          : "'");
}

/// Error for numbers of batches and updates that no run counts to.
void check_position(const fs::path& file, const Position& position) {
  const std::pair<const char*, int64_t> counts[] = {
      {"epoch", position.epoch},
      {"batch", position.batch},
      {"update", position.update},
      {"micro_batch", position.micro_batch},
      {"skips_in_a_row", position.skips_in_a_row},
      {"updates_at_loss_scale", position.updates_at_loss_scale},
      {"metrics_records", position.metrics_records},
      {"optimizer.steps", position.optimizer.steps}};
  for (const auto& [key, count] : counts)
    SEQCONV_CHECK(
        count >= 0,
        file.string(),
        ": the training state is damaged: its ",
        key,
        " must be >= 0, but got ",
        count);
}

size_t count_negative(const at::Tensor& values) {
  const float* first = values.const_data_ptr<float>();
  return static_cast<size_t>(
      std::count_if(first, first + values.numel(), [](float value) {
        return value < 0;
      }));
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
      const_cast<std::byte*>(view.data.subspan(offset).data()),
      {buffer.numel()},
      at::kFloat);
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
  Metadata metadata = {
      {"format", concat(kFormat, kStateVersion)},
      {"position", write_options(position).dump()},
      {"settings", settings.dump()},
      {"layout", layout_of(tensors.parameters)}};
  metadata[kChecksum] = checksum_of(views, metadata);
  write_safetensors(file, views, metadata);
}

std::optional<UnsoundTensor> find_unsound(const RunTensors& tensors) {
  const FlatParameters& parameters = tensors.parameters;
  const int64_t begin = tensors.shares.begin();
  if (auto found = find_unsound_in(parameters.values(), 0, parameters, ""))
    return found;
  for (const auto& [name, tensor] : tensors.optimizer.tensors())
    if (auto found =
            find_unsound_in(tensor, begin, parameters, kOptimizer + name))
      return found;
  if (tensors.average.defined())
    return find_unsound_in(tensors.average, begin, parameters, kAverage);
  return std::nullopt;
}

SavedState read_state(const fs::path& file) {
  const SafetensorsReader reader(file);
  check_version(reader);
  SEQCONV_CHECK(
      metadata_at(reader, kChecksum) ==
          checksum_of(reader.tensors(), reader.metadata()),
      file.string(),
      ": the training state is damaged, its checksum does not fit; restore "
      "the file from a copy, or train anew from a checkpoint with --init-from");
  SavedState saved;
  saved.settings = parse_metadata(reader, "settings");
  try {
    read_options(
        parse_metadata(reader, "position"),
        "position",
        saved.position);
  } catch (const UsageError& error) {
    fail(file.string(), ": ", error.what());
  }
  check_position(file, saved.position);
  return saved;
}

void load_state_tensors(
    const fs::path& file,
    const Position& position,
    const RunTensors& tensors) {
  const SafetensorsReader reader(file);
  SEQCONV_CHECK(
      metadata_at(reader, "layout") == layout_of(tensors.parameters),
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

}  // namespace seqconv
