#include "seqconv/pipeline/model_folder.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <vector>

#include "seqconv/base/files.h"
#include "seqconv/base/safetensors.h"

namespace seqconv {
namespace fs = std::filesystem;
namespace {

constexpr const char* kFormat = "seqconv-model";
constexpr int64_t kFormatVersion = 1;

Json read_config(const fs::path& folder) {
  const fs::path file = folder / "config.json";
  SEQCONV_CHECK(
      fs::is_regular_file(file),
      "'",
      folder.string(),
      "' is not a model folder: it has no config.json");
  Json config = parse_json(read_file(file), file.string());
  const auto wanted = [&](const char* key) -> const Json& {
    SEQCONV_CHECK(
        config.is_object() && config.contains(key),
        file.string(),
        ": the key '",
        key,
        "' is missing");
    return config[key];
  };
  SEQCONV_CHECK(
      wanted("format") == kFormat,
      file.string(),
      ": format must be \"",
      kFormat,
      "\", but got ",
      config["format"].dump());
  SEQCONV_CHECK(
      wanted("format_version") == kFormatVersion,
      file.string(),
      ": this program reads format version ",
      kFormatVersion,
      ", but got ",
      config["format_version"].dump());
  wanted("architecture");
  wanted("text");
  return config;
}

/// The nearest folder above `file` that holds a config.json.
fs::path folder_of_checkpoint(const fs::path& file) {
  fs::path folder = fs::absolute(file).lexically_normal().parent_path();
  for (int level = 0; level < 4; ++level) {
    if (fs::exists(folder / "config.json"))
      return folder;
    folder = folder.parent_path();
  }
  fail(
      "'",
      file.string(),
      "' is not inside a model folder: no config.json beside or above it");
}

at::ScalarType scalar_type(
    const fs::path& file,
    const TensorView& view,
    const std::string& name) {
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

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    text += concat(i ? ", " : "", shape[i]);
  return text + "]";
}

TensorView view_of(const at::Tensor& tensor) {
  return {
      ElementType::kF32,
      tensor.sizes().vec(),
      {reinterpret_cast<const std::byte*>(tensor.const_data_ptr<float>()),
       static_cast<size_t>(tensor.numel()) * sizeof(float)}};
}

}  // namespace

void write_model_config(
    const fs::path& folder,
    const ModelOptions& options,
    const TranslationText& text,
    const SearchOptions& decoding) {
  create_folder(folder);
  Json config = Json::object();
  config["format"] = kFormat;
  config["format_version"] = kFormatVersion;
  config["task"] = "translation";
  config["architecture"] = write_options(options);
  config["text"] = text.save(folder);
  config["decoding"] = write_options(decoding);
  write_file_atomically(folder / "config.json", config.dump(2) + "\n");
}

LoadedModel load_model_config(const fs::path& folder, uint64_t seed) {
  const Json config = read_config(folder);
  LoadedModel loaded;
  loaded.folder = folder;
  try {
    read_options(config["architecture"], "architecture", loaded.options);
    loaded.options.validate("architecture");
    if (config.contains("decoding")) {
      read_options(config["decoding"], "decoding", loaded.decoding);
      loaded.decoding.validate("decoding");
    }
  } catch (const UsageError& error) {
    fail((folder / "config.json").string(), ": ", error.what());
  }
  loaded.text = TranslationText::load(folder, config["text"]);
  loaded.model = TranslationModel(
      loaded.options,
      loaded.text.source->vocabulary().size(),
      loaded.text.target->vocabulary().size(),
      seed);
  return loaded;
}

LoadedModel load_model(const fs::path& path) {
  SEQCONV_CHECK(
      fs::exists(path),
      "no model '",
      path.string(),
      "': there is no such file or folder");
  const bool is_folder = fs::is_directory(path);
  const fs::path folder = is_folder ? path : folder_of_checkpoint(path);
  LoadedModel loaded = load_model_config(folder);
  load_parameters(
      is_folder ? folder / "model.safetensors" : path,
      *loaded.model);
  loaded.model->eval();
  return loaded;
}

void save_parameters(
    const fs::path& file,
    const TranslationModelImpl& model,
    const std::map<std::string, std::string>& metadata) {
  std::map<std::string, TensorView> views;
  std::vector<at::Tensor> alive;
  for (const auto& item : model.named_parameters()) {
    alive.push_back(item.value().detach().contiguous());
    views[item.key()] = view_of(alive.back());
  }
  write_safetensors(file, views, metadata);
}

void load_parameters(const fs::path& file, TranslationModelImpl& model) {
  at::NoGradGuard no_grad;
  const SafetensorsReader reader(file);
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
    parameter.copy_(at::from_blob(
        const_cast<std::byte*>(view.data.data()),
        view.shape,
        scalar_type(file, view, item.key())));
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

}  // namespace seqconv
