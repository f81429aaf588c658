#include "decode_presets.h"

#include "base/options.h"

namespace seqconv::bench {
using namespace internal;
namespace {

/// Of the WMT16 English-German models.
constexpr int64_t kWords = 32768;

DecodePreset ablation(const std::string& configs) {
  DecodePreset preset{
      .title = "Wu et al. 2019, table 3: beam 4, batch 256", .beam = 4, .batch = 256};
  for (const char* name :
       {"self_attention",
        "self_attention_window",
        "cnn",
        "depthwise",
        "increasing_kernels",
        "lightconv",
        "dynamicconv"})
    preset.models.push_back(
        {name,
         configured_model(
             concat(configs, "/ablation/", name, ".toml"), Task::kTranslation, kWords)});
  return preset;
}

DecodePreset small_decoders(const std::string& configs) {
  DecodePreset preset{.title = "Wu et al. 2019, table 7: beam 1, one sentence at a time"};
  for (const auto& kernels : {std::vector<int64_t>{31}, {3, 7, 15}, {3, 7, 15, 31, 31, 31}}) {
    ModelToRun model =
        configured_model(configs + "/ablation/dynamicconv.toml", Task::kTranslation, kWords);
    model.options.decoder.layers = std::ssize(kernels);
    model.options.decoder.kernel_sizes = kernels;
    model.options.validate("model", Task::kTranslation);
    preset.models.push_back({concat("dynamicconv, ", kernels.size(), " decoder layers"), model});
  }
  return preset;
}

}  // namespace

ModelToRun configured_model(const std::string& file, Task task, int64_t vocabulary) {
  ModelToRun model;
  model.options = ModelOptions::defaults(task);
  const Json table = load_toml(file);
  if (table.contains("model"))
    read_options(table["model"], "model", model.options);
  model.options.validate("model", task);
  model.vocabulary = {vocabulary, vocabulary};
  return model;
}

DecodePreset decode_preset(const std::string& name, const std::string& configs) {
  if (name == "wu-2019-table-3")
    return ablation(configs);
  if (name == "wu-2019-table-7")
    return small_decoders(configs);
  fail_usage("a preset must be wu-2019-table-3 or wu-2019-table-7, but got ", name);
}

}  // namespace seqconv::bench
