#include <charconv>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <tuple>

#include "base/atomic_file.h"
#include "base/average_safetensors.h"
#include "base/files.h"
#include "base/log.h"
#include "cli/backend.h"
#include "cli/flags.h"
#include "cli/program.h"
#include "cli/verbs/model_loss.h"
#include "model/descriptions_in_use.h"
#include "model/model_description.h"
#include "model/model_writing.h"
#include "model/stored_parameters.h"

namespace seqconv::internal::cli {
namespace fs = std::filesystem;
namespace {

constexpr const char* kAverageExamples =
    "The checkpoints must be of one architecture and one vocabulary. The\n"
    "output is a complete model folder.\n"
    "\n"
    "Examples:\n"
    "  seqconv average --output runs/mean \\\n"
    "    runs/a/training/checkpoints/*.safetensors\n"
    "  seqconv average --output runs/mean --ema-decay 0.8 \\\n"
    "    runs/a/training/checkpoints/*.safetensors\n"
    "  seqconv average --output runs/mean runs/seed1 runs/seed2\n"
    "  seqconv average --output runs/mean --valid-source dev.de \\\n"
    "    --valid-target dev.en runs/a/training/checkpoints/*.safetensors\n"
    "\n"
    "With validation text the loss of each checkpoint and of the average is told\n"
    "(base 2, per token), with a warning where the average is not the best.";

struct AverageFlags {
  std::string output;
  std::vector<std::string> inputs;
  Links links = Links::kInside;
  double decay = 1;
  verbs::LossText valid;
  std::string valid_text;  ///< of a language model
};

/// The update that a checkpoint is of, 0 where it does not say.
uint64_t update_of(const SafetensorsReader& checkpoint) {
  const auto found = checkpoint.metadata().find("update");
  uint64_t update = 0;
  if (found != checkpoint.metadata().end()) {
    const std::string& text = found->second;
    std::from_chars(text.data(), text.data() + text.size(), update);
  }
  return update;
}

/// The last checkpoints weigh most: they should be the later ones.
void warn_of_order(const std::vector<RootedPath>& checkpoints) {
  uint64_t before = 0;
  for (const RootedPath& checkpoint : checkpoints) {
    const uint64_t update = update_of(SafetensorsReader(checkpoint));
    if (update > 0 && update < before) {
      log_warning(
          "--ema-decay weighs checkpoints in the order given, but '",
          checkpoint.string(),
          "' of update ",
          update,
          " comes after one of update ",
          before);
      return;
    }
    before = update;
  }
}

void check_same(const ModelFiles& first, const ModelFiles& other) {
  for (const char* key : {"format_version", "architecture"})
    if (first.config.value(key, Json()) != other.config.value(key, Json()))
      fail(
          "checkpoints to average must share '",
          key,
          "' of config.json, but ",
          first.folder.string(),
          " and ",
          other.folder.string(),
          " differ");
  check_same_text(first, other, "checkpoints to average");
}

/// The models of the command line, which can be averaged.
std::vector<ModelFiles> models_to_average(
    const AverageFlags& flags, DescriptionsInUse& descriptions) {
  std::vector<ModelFiles> models;
  std::vector<ParameterShape> parameters;
  for (const std::string& input : flags.inputs) {
    models.push_back(find_model({input, flags.links}));
    descriptions.add(models.back());
    check_same(models.front(), models.back());
    if (parameters.empty())  // all of them have those of the first
      parameters = parameters_of_model(models.front().folder);
    const SafetensorsReader reader(models.back().parameters);
    refuse_int8(reader, "average");
    check_parameters(reader, parameters);
  }
  return models;
}

std::map<std::string, std::string> metadata_of(const AverageFlags& flags) {
  std::map<std::string, std::string> metadata = {{"averaged", std::to_string(flags.inputs.size())}};
  if (flags.decay < 1)
    metadata["ema_decay"] = Json(flags.decay).dump();
  return metadata;
}

/// The text to measure on, of either task; UsageError for half of a pair or both kinds.
verbs::LossText valid_text_of(const AverageFlags& flags) {
  if (flags.valid.source.empty() != flags.valid.target.empty())
    fail_usage("--valid-source and --valid-target go together, but one of them is missing");
  if (flags.valid.is_given() && !flags.valid_text.empty())
    fail_usage(
        "--valid is for language models, --valid-source and --valid-target are for translation: "
        "give the ones or the other");
  return flags.valid.is_given() ? flags.valid : verbs::LossText{"", flags.valid_text};
}

/// Measures the checkpoints, and later their average, where there is text for it.
class Comparison {
 public:
  Comparison(const AverageFlags& flags, const std::vector<RootedPath>& checkpoints) {
    const verbs::LossText text = valid_text_of(flags);
    if (!text.is_given())
      return;
    const BackendFlags standard;
    loss_.emplace(checkpoints.front(), text, workers(standard));
    for (const RootedPath& checkpoint : checkpoints) {
      const double loss = measure(checkpoint);
      if (best_.empty() || loss < best_loss_) {
        best_ = checkpoint.string();
        best_loss_ = loss;
      }
    }
  }

  void add_average(const fs::path& folder) {
    if (!loss_)
      return;
    const double loss = measure(folder);
    if (loss > best_loss_)
      log_warning(
          "the average is worse than its best part, '",
          best_,
          "': a loss of ",
          shown(loss),
          " against ",
          shown(best_loss_),
          "; average fewer or later checkpoints, or use that one");
  }

 private:
  static std::string shown(double loss) {
    char text[32];
    std::snprintf(text, sizeof text, "%.4f", loss);
    return text;
  }

  double measure(const RootedPath& model) const {
    const double loss = loss_->of(model, backend(BackendFlags()));
    log_info("loss of '", model.string(), "': ", shown(loss));
    return loss;
  }

  std::optional<verbs::ModelLoss> loss_;
  std::string best_;
  double best_loss_ = 0;
};

void run_average(const AverageFlags& flags) {
  if (!(flags.decay > 0 && flags.decay <= 1))
    fail_usage("--ema-decay must be above 0 and at most 1, but got ", flags.decay);
  DescriptionsInUse descriptions;
  const std::vector<ModelFiles> models = models_to_average(flags, descriptions);
  const fs::path output = flags.output;
  std::vector<RootedPath> checkpoints;
  for (const ModelFiles& model : models) {
    check_other_folder(output, model);
    checkpoints.push_back(model.parameters);
  }
  if (flags.decay < 1)
    warn_of_order(checkpoints);
  check_output_folder(output);
  Comparison comparison(flags, checkpoints);
  const RootedPath& first = models.front().folder;
  write_model_folder(
      output,
      [&](const fs::path& file) {
        average_safetensors(checkpoints, file, metadata_of(flags), flags.decay);
        descriptions.check();
      },
      [&] {
        copy_text_files(first, output);
        write_file_atomically(output / "config.json", read_file(first / "config.json"));
      });
  log_info("averaged ", checkpoints.size(), " checkpoints into ", output.string());
  comparison.add_average(output);
}

}  // namespace

void add_average(Program& program) {
  auto flags = std::make_shared<AverageFlags>();
  CLI::App& verb =
      program.add_verb("average", "Average the parameters of checkpoints", kAverageExamples);
  verb.add_option("-o,--output", flags->output, "Model folder to write")
      ->type_name("DIR")
      ->required();
  add_real(
      verb,
      "--ema-decay",
      flags->decay,
      R"(A checkpoint's weight to the next one's, in the order given: 0 < X <= 1)");
  verb.add_option(
          "CHECKPOINT", flags->inputs, ".safetensors files inside model folders, or model folders")
      ->required();
  add_follow_links(verb, flags->links);
  for (const auto& [flag, file, side] :
       {std::tuple{"--valid-source", &flags->valid.source, "source"},
        {"--valid-target", &flags->valid.target, "target"}})
    verb.add_option(flag, *file, concat("Measure the average and its parts: ", side, " lines"))
        ->type_name("FILE");
  verb.add_option("--valid", flags->valid_text, "The same for language models: a text")
      ->type_name("FILE");
  verb.callback([&program, flags] { program.run = [flags] { run_average(*flags); }; });
}

}  // namespace seqconv::internal::cli
