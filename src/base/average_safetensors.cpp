#include "base/average_safetensors.h"

#include <deque>

#include "base/elements.h"
#include "base/error.h"
#include "base/safetensors.h"

namespace seqconv::internal {
namespace {

void check_same_tensors(const SafetensorsReader& first, const SafetensorsReader& other) {
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

/// A mean is not finite when an input is not, or does not fit into a float32.
[[noreturn]] void fail_not_finite(
    const std::string& name, const std::deque<SafetensorsReader>& readers) {
  for (const SafetensorsReader& reader : readers) {
    const TensorView& view = reader.at(name);
    require_finite(
        count_not_finite(view.type, view.data),
        concat(reader.path().string(), ": tensor '", name, "'"));
  }
  fail(
      readers.front().path().string(),
      ": the mean of tensor '",
      name,
      "' is too large for float32");
}

std::vector<float> mean_of_tensor(
    const std::string& name, const std::deque<SafetensorsReader>& readers, double decay) {
  const int64_t count = readers.front().at(name).count();
  std::vector<double> sums(static_cast<size_t>(count), 0.0);
  double weights = 0;
  for (const SafetensorsReader& reader : readers) {
    for (double& sum : sums)
      sum *= decay;
    weights = weights * decay + 1;
    add_elements(
        reader.at(name).type,
        reader.at(name).data,
        sums,
        concat(reader.path().string(), ": tensor '", name, "'"));
  }
  std::vector<float> mean = mean_of(sums, weights);
  if (count_not_finite(ElementType::kF32, std::as_bytes(std::span<const float>(mean))) > 0)
    fail_not_finite(name, readers);
  return mean;
}

}  // namespace

void average_safetensors(
    const std::vector<RootedPath>& files,
    const std::filesystem::path& output,
    const std::map<std::string, std::string>& metadata,
    double decay) {
  SEQCONV_CHECK(!files.empty(), "averaging needs at least one checkpoint");
  SEQCONV_CHECK(
      decay > 0 && decay <= 1,
      "the decay of an average must be above 0 and at most 1, but got ",
      decay);
  std::deque<SafetensorsReader> readers;
  for (const auto& file : files)
    readers.emplace_back(file);
  for (const SafetensorsReader& reader : readers)
    check_same_tensors(readers.front(), reader);
  std::map<std::string, TensorSource> sources;
  for (const auto& [name, view] : readers.front().tensors())
    sources[name] = {
        ElementType::kF32, view.shape, [&readers, key = name, decay](const ByteSink& sink) {
          sink(std::as_bytes(std::span<const float>(mean_of_tensor(key, readers, decay))));
        }};
  stream_safetensors(output, sources, metadata);
}

}  // namespace seqconv::internal
