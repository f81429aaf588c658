#include "model/quantize.h"

#include <algorithm>
#include <map>

#include "base/atomic_file.h"
#include "base/elements.h"
#include "base/files.h"
#include "kernels/packed_linear.h"
#include "model/descriptions_in_use.h"
#include "model/model_description.h"
#include "model/model_writing.h"
#include "model/stored_parameters.h"

namespace seqconv::internal {
namespace fs = std::filesystem;
namespace {

/// The first version whose programs read int8.
constexpr int64_t kInt8Version = 4;

template <class T>
void give(const ByteSink& sink, const std::vector<T>& values) {
  sink(std::as_bytes(std::span(values)));
}

/// The rounded rows, one after the other.
template <class Use>
void quantize_rows(const TensorView& view, const Use& use) {
  const auto width = static_cast<size_t>(view.shape[1]);
  const size_t bytes = width * element_size(view.type);
  std::vector<int8_t> values(width);
  for (size_t at = 0; at < view.data.size(); at += bytes) {
    const std::vector<float> row = to_floats(view.type, view.data.subspan(at, bytes));
    const float scale = kernels::quantize_row(row.data(), view.shape[1], values.data());
    use(values, scale);
  }
}

void add_matrix(
    const std::string& name, const TensorView& view, std::map<std::string, TensorSource>& tensors) {
  tensors[name] = {ElementType::kI8, view.shape, [&view](const ByteSink& sink) {
                     quantize_rows(view, [&](const auto& values, float) { give(sink, values); });
                   }};
  tensors[scale_name(name)] = {
      ElementType::kF32, {view.shape[0]}, [&view](const ByteSink& sink) {
        std::vector<float> scales;
        quantize_rows(view, [&](const auto&, float scale) { scales.push_back(scale); });
        give(sink, scales);
      }};
}

void add_numbers(
    const std::string& name, const TensorView& view, std::map<std::string, TensorSource>& tensors) {
  tensors[name] = {ElementType::kF32, view.shape, [&view](const auto& sink) {
                     give(sink, to_floats(view.type, view.data));
                   }};
}

/// config.json of the int8 folder.
Json int8_config(Json config) {
  config["format_version"] = std::max(kInt8Version, config["format_version"].get<int64_t>());
  config["weights"] = "int8";
  return config;
}

}  // namespace

void quantize_parameters(
    const SafetensorsReader& reader,
    const std::vector<ParameterShape>& parameters,
    const fs::path& output) {
  std::map<std::string, TensorSource> tensors;
  for (const ParameterShape& parameter : parameters) {
    const TensorView& view = reader.at(parameter.name);
    if (parameter.is_matrix && view.shape[1] < kernels::kMostInt8Inputs)
      add_matrix(parameter.name, view, tensors);
    else
      add_numbers(parameter.name, view, tensors);
  }
  stream_safetensors(output, tensors, {{"weights", "int8"}});
}

void quantize_model(const RootedPath& model, const fs::path& output) {
  const ModelFiles files = find_model(model);
  DescriptionsInUse descriptions;
  descriptions.add(files);
  const std::vector<ParameterShape> parameters = parameters_of_model(files.folder);
  const SafetensorsReader reader(files.parameters);
  refuse_int8(reader, "quantize");
  check_parameters(reader, parameters);
  check_other_folder(output, files);
  check_output_folder(output);
  write_model_folder(
      output,
      [&](const fs::path& file) {
        quantize_parameters(reader, parameters, file);
        descriptions.check();
      },
      [&] {
        copy_text_files(files.folder, output);
        write_file_atomically(output / "config.json", int8_config(files.config).dump(2) + "\n");
      });
}

}  // namespace seqconv::internal
