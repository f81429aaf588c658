#pragma once

#include <filesystem>
#include <string>

#include "base/elements.h"
#include "base/files.h"
#include "base/options.h"
#include "base/safetensors.h"
#include "model/checkpoint/import.h"

namespace seqconv::internal::testing {

/// A file of tests/model/data, which make_checkpoints.py has written.
inline std::filesystem::path synthetic(const std::string& name) {
  return std::filesystem::path(SEQCONV_SOURCE_DIR) / "tests" / "model" / "data" / name;
}

/// A request to import those files into `output`.
inline ImportRequest synthetic_import(
    const std::vector<std::string>& names, const std::filesystem::path& output) {
  ImportRequest request{
      .text = {
          .subword = Subword::kNone,
          .source_dictionary = synthetic("dict.txt"),
          .target_dictionary = synthetic("dict.txt")}};
  for (const std::string& name : names)
    request.checkpoints.push_back(synthetic(name));
  request.output = output;
  return request;
}

/// Changes a model folder's config.json by `edit(config)`.
template <class Edit>
void edit_config(const std::filesystem::path& model, const Edit& edit) {
  const auto file = model / "config.json";
  Json config = parse_json(read_file(file), "config.json");
  edit(config);
  write_file_atomically(file, config.dump());
}

/// Elements as float64, whatever their type.
inline std::vector<double> values_of(const TensorView& view) {
  std::vector<double> values(static_cast<size_t>(view.count()));
  add_elements(view.type, view.data, values, "a test's tensor");
  return values;
}

}  // namespace seqconv::internal::testing
