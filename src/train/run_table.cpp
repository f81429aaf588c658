#include "train/run_table.h"

#include <ATen/Parallel.h>

#include "base/log.h"
#include "base/options.h"
#include "libtorch/backend/device.h"
#include "model/model_description.h"
#include "train/agreement.h"
#include "train/auto_settings.h"
#include "train/data_options.h"
#include "train/processes/processes.h"
#include "train/run_folder.h"
#include "train/run_setup.h"

namespace seqconv::internal {
namespace {

/// Fine-tuning moves what is learned already less than learning from nothing.
constexpr double kFineTuningShare = 0.25;

/// The sections of a table that say what a run may spend, and on what.
TrainConfig read_beginning(const Json& table, const TrainRequest& request) {
  TrainConfig config;
  if (table.contains("task"))
    config.task = table["task"] == "language_model" ? Task::kLanguageModel : Task::kTranslation;
  if (table.contains("data"))
    read_options(table["data"], "data", config.data);
  if (table.contains("training"))
    read_options(table["training"], "training", config.training);
  config.data.links = request.links;
  if (config.task == Task::kTranslation)
    check_pair_data(config.data);
  else if (config.data.train.empty())
    fail_usage("data.train must name at least one file");
  return config;
}

RunBudget budget_of(const TrainingOptions& training, const Communicator& processes) {
  const bool asks = training.device == "auto" || training.device.starts_with("cuda");
  const int64_t threads = training.threads > 0 ? training.threads
      : processes.size() > 1                   ? share_of_cores(processes)
                                               : at::get_num_threads();
  return {
      .minutes = training.max_minutes,
      .threads = threads * processes.size(),
      .on_gpu = asks && sees_cuda()};
}

/// The [model] and [text] that a run from another model shares with it; dropouts are its own.
Json shared_with(const TrainRequest& request, Task task) {
  const RootedPath folder(request.init_from, request.links);
  const auto table_of = [](const auto& description, const TextOptions& text) {
    return Json{{"model", write_options(description.options)}, {"text", write_options(text)}};
  };
  Json shared;
  if (task == Task::kTranslation) {
    const TranslationDescription description = read_translation_description(folder);
    shared = table_of(description, description.text.options);
  } else {
    const LanguageDescription description = read_language_description(folder);
    shared = table_of(description, description.text.options);
  }
  for (const char* key : {"dropout", "input_dropout", "weight_dropout"})
    shared["model"].erase(key);
  return shared;
}

void log_choices(const CorpusFacts& facts, const AutoSettings& chosen) {
  if (facts.is_sorted)
    log_info("the training text is sorted by length: its order plays no part in what follows");
  log_info(
      "sizes = \"auto\": chosen for ",
      facts.samples,
      facts.source_words > 0 ? " pairs" : " lines",
      "; any key that the configuration or --set has wins");
  for (const std::string& reason : chosen.reasons)
    log_info("  ", reason);
}

Json choose(const Json& table, const TrainRequest& request, const Communicator& processes) {
  const TrainConfig config = read_beginning(table, request);
  if (!request.dry_run) {  // before all the text is read
    TrainRequest begun = request;
    begun.config = config;
    check_output(begun);
  }
  log_info("reading the training text");
  const CorpusFacts facts = measure_corpus(config);
  const RunBudget budget = budget_of(config.training, processes);
  if (request.init_from.empty()) {
    AutoSettings chosen = choose_settings(table, facts, budget);
    log_choices(facts, chosen);
    return chosen.table;
  }
  const Json shared = shared_with(request, config.task);
  AutoSettings chosen = choose_settings(merge_beneath(table, shared), facts, budget);
  if (Json& schedule = chosen.table["schedule"]; schedule.contains("learning_rate")) {
    const double rate = kFineTuningShare * schedule["learning_rate"].get<double>();
    schedule["learning_rate"] = rate;
    chosen.reasons.push_back(
        concat("schedule.learning_rate = ", rate, ": a quarter, as the run starts from a model"));
  }
  log_choices(facts, chosen);
  return merge_beneath(chosen.table, shared);
}

}  // namespace

Json complete_table(Json table, const TrainRequest& request, Communicator& processes) {
  const std::string asked(enum_name(Sizes::kAuto));
  if (!table.is_object() || !table.contains("sizes") || table["sizes"] != asked)
    return table;
  if (request.resume) {
    check_output(request);
    table.erase("sizes");
    const RunFolder folder{{request.output, request.links}};
    return merge_beneath(table, load_toml(folder.settings().string()));
  }
  std::string chosen;
  if (processes.is_first())
    chosen = choose(table, request, processes).dump();
  return merge_beneath(table, Json::parse(broadcast_text(processes, chosen, 0)));
}

}  // namespace seqconv::internal
