#include "golden_model.h"

#include <ATen/ATen.h>

#include "base/files.h"
#include "libtorch/backend/backend.h"
#include "libtorch/backend/parameters.h"
#include "model/checkpoint/fairseq_architecture.h"
#include "model/checkpoint/import.h"
#include "runtime/runtime_backends.h"

namespace seqconv::internal::testing {
namespace fs = std::filesystem;
namespace {

/// The reference's files are of float32; comparisons are made in it.
at::Tensor read_tensor(const TensorView& view) {
  const auto type = view.type == ElementType::kI64 ? at::kLong : at::kFloat;
  SEQCONV_CHECK(
      view.type == ElementType::kI64 || view.type == ElementType::kF32,
      "recorded tensors must be I64 or F32, but got ",
      element_name(view.type));
  const at::Tensor tensor = at::empty(view.shape, type);
  if (!view.data.empty())
    std::memcpy(tensor.mutable_data_ptr(), view.data.data(), view.data.size());
  return tensor;
}

TextOptions dictionaries(const fs::path& folder, const Json& arguments) {
  TextOptions text{.subword = Subword::kNone};
  if (fs::exists(folder / "dict.txt")) {
    text.dictionary = folder / "dict.txt";
    return text;
  }
  const auto file = [&](const char* language) {
    const auto name = arguments.at(language).get<std::string>();
    return (folder / ("dict." + name + ".txt")).string();
  };
  text.source_dictionary = file("source_lang");
  text.target_dictionary = file("target_lang");
  return text;
}

bool is_of_kind(const fs::path& folder, GoldenKind kind) {
  const auto has = [&](const char* name) { return fs::exists(folder / name); };
  if (!has("model.pt"))
    return false;
  if (kind == GoldenKind::kText)
    return has("golden.json");
  return has("outputs.json") && has("dict.txt") == (kind == GoldenKind::kLanguage);
}

ModelOptions without_dropout(ModelOptions options) {
  options.dropout = options.attention_dropout = options.activation_dropout = options.input_dropout =
      options.weight_dropout = options.adaptive.softmax_dropout = 0;
  return options;
}

}  // namespace

std::vector<fs::path> golden_folders(GoldenKind kind) {
  return golden_folders_where([&](const fs::path& folder) { return is_of_kind(folder, kind); });
}

std::vector<fs::path> golden_model_folders() {
  std::vector<fs::path> folders = golden_folders(GoldenKind::kTranslation);
  for (const fs::path& path : golden_folders(GoldenKind::kLanguage))
    folders.push_back(path);
  return folders;
}

std::vector<fs::path> golden_adaptive_folders() {
  std::vector<fs::path> folders = golden_folders(GoldenKind::kLanguage);
  std::erase_if(folders, [](const fs::path& folder) {
    return !parse_json(read_file(folder / "outputs.json"), "outputs")
                .contains("adaptive_criterion_loss_nats_sum");
  });
  return folders;
}

std::string golden_model_name(const ::testing::TestParamInfo<fs::path>& info) {
  std::string name = concat(info.index, "_", info.param.filename().string());
  for (char& c : name)
    c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

GoldenModel::GoldenModel(const fs::path& folder, const std::string& stem) {
  const FairseqCheckpoint checkpoint(folder / "model.pt", CheckpointWeights::kTrained);
  task_ = task_of(checkpoint);
  import_checkpoint(
      {.checkpoints = {folder / "model.pt"},
       .text = dictionaries(folder, checkpoint.arguments()),
       .output = model_.path()});
  if (translates()) {
    const auto description = read_translation_description(model_.path());
    options_ = description.options;
    vocabulary_ = description.vocabulary();
  } else {
    const auto description = read_language_description(model_.path());
    options_ = description.options;
    vocabulary_ = description.vocabulary();
  }
  options_ = without_dropout(options_);
  layout_ = fairseq_layout(options_, task_, vocabulary_);
  for (const auto& [name, tensor] : checkpoint.tensors())
    shapes_[name] = tensor.shape;
  const SafetensorsReader reader(folder / (stem + ".safetensors"));
  for (const auto& [name, view] : reader.tensors())
    tensors_[name] = read_tensor(view);
  outputs_ = parse_json(read_file(folder / (stem + ".json")), stem);
}

const at::Tensor& GoldenModel::recorded(const std::string& name) const {
  return tensors_.at(name);
}

std::vector<std::string> GoldenModel::recorded_names(const std::string& prefix) const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors_)
    if (name.starts_with(prefix))
      names.push_back(name);
  return names;
}

ModelToRun GoldenModel::to_run() const {
  return {options_, vocabulary_, model_.path() / "model.safetensors"};
}

std::vector<std::shared_ptr<const TranslationBackend>> GoldenModel::translation_backends() const {
  return {TorchBackends().translation({to_run()}), RuntimeBackends().translation({to_run()})};
}

std::vector<std::shared_ptr<const LanguageBackend>> GoldenModel::language_backends() const {
  return {TorchBackends().language(to_run()), RuntimeBackends().language(to_run())};
}

TranslationModel GoldenModel::translation_model() const {
  TranslationModel model(options_, vocabulary_.source, vocabulary_.target);
  load_parameters(model_.path() / "model.safetensors", *model);
  return model;
}

LanguageModel GoldenModel::language_model(bool fairseq_compatible) const {
  ModelOptions options = options_;
  options.adaptive.fairseq_compatible = fairseq_compatible;
  LanguageModel model(options, vocabulary_.target);
  load_parameters(model_.path() / "model.safetensors", *model);
  return model;
}

at::Tensor GoldenModel::tokens(const std::string& kind, int64_t row) const {
  const std::string side = kind == "src" ? "src" : "tgt";
  const auto length = recorded(side + "_lengths")[row].item<int64_t>();
  return recorded(kind + "_tokens")[row].narrow(0, 0, length).unsqueeze(0);
}

std::vector<int32_t> GoldenModel::ids(const std::string& kind, int64_t row) const {
  const at::Tensor all = tokens(kind, row)[0];
  std::vector<int32_t> ids;
  for (int64_t i = 0; i + 1 < all.size(0); ++i)  // make_batch adds </s>
    ids.push_back(static_cast<int32_t>(all[i].item<int64_t>()));
  return ids;
}

Batch GoldenModel::batch(const std::vector<int64_t>& rows) const {
  std::vector<std::vector<int32_t>> sources, targets;
  for (const int64_t row : rows) {
    sources.push_back(translates() ? ids("src", row) : std::vector<int32_t>{});
    targets.push_back(ids("tgt", row));
  }
  return make_batch(sources, targets);
}

at::Tensor GoldenModel::theirs(
    const std::string& name, const std::map<std::string, at::Tensor>& ours) const {
  std::map<int64_t, at::Tensor> parts;  // by their first row
  for (const Correspondence& parameter : layout_.parameters)
    for (const auto& alternative : parameter.alternatives) {
      int64_t begin = 0;
      for (const FairseqRows& part : alternative) {
        const auto shape = shapes_.find(part.name);
        if (shape == shapes_.end())
          break;
        const int64_t count = part.count < 0 ? shape->second.at(0) : part.count;
        if (part.name == name)
          parts[part.begin] = ours.at(parameter.ours.name).narrow(0, begin, count);
        begin += count;
      }
    }
  SEQCONV_CHECK(!parts.empty(), "no parameter of ours is '", name, "'");
  std::vector<at::Tensor> rows;
  for (const auto& [begin, part] : parts)
    rows.push_back(part);
  return at::cat(rows).reshape(shapes_.at(name));
}

}  // namespace seqconv::internal::testing
