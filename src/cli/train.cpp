#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/json.h"
#include "cli/configurations.h"
#include "cli/engine_loader.h"
#include "cli/flags.h"
#include "cli/program.h"

namespace seqconv::internal::cli {
namespace {

constexpr const char* kTrainExamples =
    "Examples:\n"
    "  seqconv train --source train.de --target train.en --minutes 5 --output runs/mine\n"
    "  seqconv train --text book.txt --minutes 5 --output runs/book\n"
    "  seqconv train configs/demo_numbers.toml --output runs/numbers\n"
    "  seqconv train my.toml --set training.seed=2 --set model.dim=256\n"
    "  seqconv train my.toml --output runs/my --minutes 30\n"
    "  seqconv train my.toml --output runs/my --resume\n"
    "  seqconv train my.toml --output runs/tuned --init-from runs/my\n"
    "  seqconv train --help-config\n"
    "  mpirun -np 2 seqconv train my.toml --set training.accumulate=2\n"
    "\n"
    "SIGINT, SIGTERM, SIGHUP and SIGUSR1 save the state and leave; --resume "
    "goes\n"
    "on from there and gives the same numbers as a run that was never "
    "stopped.\n"
    "A second SIGINT or SIGTERM, a second or more after the first, leaves at once.";

/// Flags that name the data, in place of a configuration or over its keys.
struct DataFlags {
  std::vector<std::string> source;
  std::vector<std::string> target;
  std::vector<std::string> text;
  std::vector<std::string> documents;
  std::vector<std::string> valid_source;
  std::vector<std::string> valid_target;
  std::vector<std::string> valid;
  std::string source_key;
  std::string target_key;

  bool names_training_text() const {
    return !source.empty() || !text.empty() || !documents.empty();
  }
};

struct TrainFlags {
  TrainArguments arguments;
  DataFlags data;
  bool help_config = false;
  double minutes = std::nan("");  ///< not given
};

/// Overrides of keys of [data] that say it.
std::vector<std::string> data_overrides(const DataFlags& flags) {
  if (flags.source.size() != flags.target.size())
    fail_usage(
        "--source and --target must name as many files, but got ",
        flags.source.size(),
        " and ",
        flags.target.size());
  if (!flags.text.empty() && (!flags.source.empty() || !flags.documents.empty()))
    fail_usage("--text is a language model's; give --source and --target, or --documents, for "
               "translation and summaries");
  if (!flags.documents.empty() && (flags.source_key.empty() || flags.target_key.empty()))
    fail_usage("--documents are JSON lines: --source-key and --target-key must name what holds "
               "the document and its summary");
  std::vector<std::string> overrides;
  const auto add = [&](const char* key, const std::vector<std::string>& files) {
    if (!files.empty())
      overrides.push_back(concat("data.", key, "=", Json(files).dump()));
  };
  const auto add_key = [&](const char* key, const std::string& name) {
    if (!name.empty())
      overrides.push_back(concat("data.", key, "=", Json(name).dump()));
  };
  if (!flags.text.empty())
    overrides.emplace_back("task=language_model");
  add("train_source", flags.source);
  add("train_target", flags.target);
  add("train", flags.text.empty() ? flags.documents : flags.text);
  add("valid_source", flags.valid_source);
  add("valid_target", flags.valid_target);
  add("valid", flags.valid);
  add_key("source_key", flags.source_key);
  add_key("target_key", flags.target_key);
  return overrides;
}

/// The run's folder, where nothing else says it.
std::string default_output(const std::string& config) {
  if (config.empty())
    fail_usage("--output DIR is required where no CONFIG gives the model folder a name");
  return "runs/" + std::filesystem::path(config).stem().string();
}

void run_train(TrainFlags& flags, std::ostream& out) {
  if (flags.help_config) {
    out << engine().describe_config(ConfigFormat::kToml);
    return;
  }
  TrainArguments& arguments = flags.arguments;
  if (arguments.config.empty() && !flags.data.names_training_text() && !arguments.resume)
    fail_usage("training text is required: --source FILE --target FILE, --text FILE for a language "
               "model, --documents FILE for summaries, or CONFIG, a TOML file (see --help-config)");
  if (arguments.resume && !arguments.init_from.empty())
    fail_usage("--resume goes on with a run and --init-from starts one; give one of them");
  std::vector<std::string> overrides = data_overrides(flags.data);
  if (!std::isnan(flags.minutes))
    overrides.push_back(concat("training.max_minutes=", flags.minutes));
  std::ranges::copy(arguments.overrides, std::back_inserter(overrides));
  arguments.overrides = std::move(overrides);
  if (arguments.output.empty())
    arguments.output = default_output(arguments.config);
  if (!arguments.config.empty())
    arguments.config = find_configuration("CONFIG", arguments.config).string();
  arguments.configurations = configurations_folder().string();
  engine().train(arguments);
}

void add_data_flags(CLI::App& verb, DataFlags& flags) {
  const auto add = [&](const char* name, std::vector<std::string>& files, const char* help) {
    add_repeated(verb, name, files, help)->type_name("FILE")->group("Data");
  };
  add("--source", flags.source, "Training text, a sentence a line (data.train_source)");
  add("--target", flags.target, "Its translation, line by line (data.train_target)");
  add("--text", flags.text, "Training text of a language model (data.train)");
  add("--documents",
      flags.documents,
      "JSON lines with documents and summaries (data.train, --source-key, --target-key)");
  add("--valid-source", flags.valid_source, "Validation text (data.valid_source) [held out]");
  add("--valid-target", flags.valid_target, "Its translation (data.valid_target)");
  add("--valid", flags.valid, "The same for --text or --documents (data.valid)");
  verb.add_option("--source-key", flags.source_key, "The key of a document (data.source_key)")
      ->type_name("KEY")
      ->group("Data");
  verb.add_option("--target-key", flags.target_key, "The key of its summary (data.target_key)")
      ->type_name("KEY")
      ->group("Data");
}

}  // namespace

void add_train(Program& program) {
  auto flags = std::make_shared<TrainFlags>();
  TrainArguments& arguments = flags->arguments;
  CLI::App& verb = program.add_verb("train", "Train a model from raw text files", kTrainExamples);
  verb.add_option(
      "CONFIG",
      arguments.config,
      "A TOML file, or a configuration by name (lightconv_iwslt_de_en)");
  add_data_flags(verb, flags->data);
  add_repeated(verb, "--set", arguments.overrides, "Override a key of the configuration")
      ->type_name("KEY=VALUE");
  verb.add_option("-o,--output", arguments.output, "Model folder to write [runs/<name of CONFIG>]")
      ->type_name("DIR");
  add_real(verb, "--minutes", flags->minutes, "End within so many minutes (training.max_minutes)")
      ->default_str("");
  verb.add_flag("--resume", arguments.resume, "Go on where the run stopped");
  verb.add_option(
          "--init-from",
          arguments.init_from,
          "Start from this model's weights and vocabulary (fine-tuning)")
      ->type_name("DIR");
  add_follow_links(verb, arguments.links);
  verb.add_flag(
      "--dry-run",
      arguments.dry_run,
      "Check the configuration and the data, print sizes and speed, write nothing");
  verb.add_flag(
      "--help-config",
      flags->help_config,
      "List every configuration key with its default and meaning");
  verb.callback(
      [&program, flags] { program.run = [&program, flags] { run_train(*flags, program.out); }; });
}

}  // namespace seqconv::internal::cli
