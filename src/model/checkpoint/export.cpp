#include "model/checkpoint/export.h"

#include <deque>

#include "base/error.h"
#include "base/log.h"
#include "model/checkpoint/fairseq_mixers.h"
#include "model/checkpoint/fairseq_names.h"
#include "model/checkpoint/fairseq_settings.h"
#include "model/checkpoint/pytorch_writer.h"
#include "model/model_description.h"
#include "model/stored_parameters.h"

namespace seqconv::internal {
namespace fs = std::filesystem;
namespace {

/// What an export needs to know of a model, whatever its task.
struct ExportedModel {
  Task task;
  ModelOptions options;
  VocabularySizes vocabulary;
  TaskSettings settings{};
};

ExportedModel read_model(const RootedPath& folder) {
  const Task task = task_of_model(folder);
  if (task == Task::kTranslation) {
    const auto model = read_translation_description(folder);
    const TextOptions& text = model.text.options;
    return {
        task,
        model.options,
        model.vocabulary(),
        {text.source_language, text.target_language, model.text.max_source_tokens}};
  }
  const auto model = read_language_description(folder);
  return {task, model.options, model.vocabulary()};
}

/// Tensors that the checkpoint has and the model has not, kept alive.
class Bookkeeping {
 public:
  NamedTensor real(const std::string& name, std::vector<int64_t> shape, float value) {
    int64_t count = 1;
    for (const int64_t size : shape)
      count *= size;
    reals_.emplace_back(static_cast<size_t>(count), value);
    const auto bytes = std::as_bytes(std::span<const float>(reals_.back()));
    return {name, {ElementType::kF32, std::move(shape), bytes}};
  }
  NamedTensor whole(const std::string& name, int64_t value) {
    wholes_.push_back(value);
    const auto bytes = std::as_bytes(std::span<const int64_t>(&wholes_.back(), 1));
    return {name, {ElementType::kI64, {1}, bytes}};
  }

 private:
  std::deque<std::vector<float>> reals_;
  std::deque<int64_t> wholes_;
};

/// Splits one of our tensors, row after row, into as many equal ones as the
/// checkpoint has.
void add_parts(
    const std::vector<FairseqRows>& parts,
    const TensorView& ours,
    std::vector<NamedTensor>& tensors) {
  const auto count = static_cast<int64_t>(parts.size());
  const size_t bytes = ours.data.size() / parts.size();
  for (size_t i = 0; i < parts.size(); ++i) {
    std::vector<int64_t> shape = ours.shape;
    shape[0] /= count;
    tensors.push_back(
        {parts[i].name,
         {ours.type, their_shape(parts[i].name, shape), ours.data.subspan(i * bytes, bytes)}});
  }
}

void add_shared(const FairseqLayout& layout, bool main, std::vector<NamedTensor>& tensors) {
  const std::string other = main ? "decoder.embed_out" : "decoder.output_projection.weight";
  std::vector<NamedTensor> copies;
  for (const SharedTensor& shared : layout.shared) {
    // Before output_projection, a tied output had no tensor of its own.
    if (shared.copy == other || (!main && shared.copy == "decoder.embed_out"))
      continue;
    for (const NamedTensor& tensor : tensors)
      if (tensor.name == shared.original)
        copies.push_back({shared.copy, tensor.view});
  }
  tensors.insert(tensors.end(), copies.begin(), copies.end());
}

/// What the modules of fairseq register beside their parameters.
void add_bookkeeping(
    const ExportedModel& model, bool main, Bookkeeping& store, std::vector<NamedTensor>& tensors) {
  const auto add_side = [&](const std::string& name, Side side) {
    const StackOptions& stack =
        side == Side::kEncoder ? model.options.encoder : model.options.decoder;
    tensors.push_back(store.real(name + ".version", {1}, 2));
    if (!main && model.options.positions_of(stack) == PositionKind::kSinusoidal)
      tensors.push_back(store.real(name + ".embed_positions._float_tensor", {1}, 0));
    for (int64_t layer = 0; layer < stack.layers; ++layer) {
      const auto shape =
          unused_bias_shape(layer_options(model.options, model.task, side, layer).mixer);
      if (!shape.empty())
        tensors.push_back(store.real(concat(name, ".layers.", layer, ".conv.conv_bias"), shape, 0));
    }
  };
  if (model.task == Task::kTranslation)
    add_side("encoder", Side::kEncoder);
  add_side("decoder", Side::kDecoder);
  const AdaptiveOptions& adaptive = model.options.adaptive;
  if (!adaptive.input_cutoffs.empty())
    tensors.push_back(store.real("decoder.embed_tokens._float_tensor", {1}, 0));
  if (adaptive.softmax_cutoffs.empty())
    return;
  tensors.push_back(store.whole("decoder.adaptive_softmax.version", 1));
  if (model.options.tie != Tying::kNone)
    tensors.push_back(store.real("decoder.adaptive_softmax.head._float_tensor", {1}, 0));
}

/// Entries beside the model's that fairseq asks a checkpoint for.
Json checkpoint_settings(const ExportedModel& model) {
  const Json history = {
      {"criterion_name", "LabelSmoothedCrossEntropyCriterion"},
      {"optimizer_name", "FairseqAdam"},
      {"lr_scheduler_state", Json::object()},
      {"num_updates", 0}};
  const Json iterator = {
      {"version", 2}, {"epoch", 1}, {"iterations_in_epoch", 0}, {"shuffle", true}};
  return {
      {"args", nullptr},
      {"cfg", fairseq_settings(model.options, model.task, model.settings)},
      {"criterion", nullptr},
      {"optimizer_history", Json::array({history})},
      {"task_state", Json::object()},
      {"extra_state", {{"train_iterator", iterator}}}};
}

void export_fairseq(
    const ExportedModel& model, const SafetensorsReader& reader, const fs::path& output) {
  const bool main = !is_talk(model.options);
  if (model.task == Task::kTranslation && model.options.input_dim > 0)
    log_warning(
        "fairseq's translation models have a word embedding as wide as their decoder, but "
        "model.input_dim is ",
        model.options.input_dim,
        ": only a program that gives the decoder such an embedding will load the file");
  if (const int64_t most = model.settings.max_source_tokens; most > 0)
    log_info(
        "the model cuts sources to ",
        most,
        " tokens: fairseq-generate does so with --truncate-source --max-source-positions ",
        most);
  const FairseqLayout layout = fairseq_layout(model.options, model.task, model.vocabulary);
  PyTorchContent content{checkpoint_settings(model), "model", {}};
  for (const Correspondence& parameter : layout.parameters)
    add_parts(
        parameter.alternatives.at(main ? parameter.main : 0),
        reader.at(parameter.ours.name),
        content.tensors);
  add_shared(layout, main, content.tensors);
  Bookkeeping store;
  add_bookkeeping(model, main, store, content.tensors);
  write_pytorch(output, content);
}

}  // namespace

void export_model(const RootedPath& model, ExportFormat format, const fs::path& output) {
  const ModelFiles files = find_model(model);
  check_output_file(output, files);
  const ExportedModel exported = read_model(files.folder);
  const SafetensorsReader reader(files.parameters);
  refuse_int8(reader, "export");
  check_parameters(reader, list_parameters(exported.options, exported.task, exported.vocabulary));
  switch (format) {
    case ExportFormat::kFairseq:
      export_fairseq(exported, reader, output);
      break;
    case ExportFormat::kPytorch: {
      PyTorchContent content;
      for (const auto& [name, view] : reader.tensors())
        content.tensors.push_back({name, view});
      write_pytorch(output, content);
      break;
    }
  }
  log_info("exported ", files.parameters.string(), " to ", output.string());
}

}  // namespace seqconv::internal
