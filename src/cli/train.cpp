#include <cmath>

#include "cli/configurations.h"
#include "cli/engine_loader.h"
#include "cli/flags.h"
#include "cli/program.h"

namespace seqconv::internal::cli {
namespace {

constexpr const char* kTrainExamples =
    "Examples:\n"
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

struct TrainFlags {
  TrainArguments arguments;
  bool help_config = false;
  double minutes = std::nan("");  ///< not given
};

void run_train(TrainFlags& flags, std::ostream& out) {
  if (flags.help_config) {
    out << engine().describe_config(ConfigFormat::kToml);
    return;
  }
  TrainArguments& arguments = flags.arguments;
  if (arguments.config.empty())
    fail_usage("CONFIG is required: a TOML file (see --help-config)");
  if (arguments.resume && !arguments.init_from.empty())
    fail_usage("--resume goes on with a run and --init-from starts one; give one of them");
  if (!std::isnan(flags.minutes))
    arguments.overrides.push_back(concat("training.max_minutes=", flags.minutes));
  if (arguments.output.empty())
    arguments.output = "runs/" + std::filesystem::path(arguments.config).stem().string();
  arguments.config = find_configuration("CONFIG", arguments.config).string();
  arguments.configurations = configurations_folder().string();
  engine().train(arguments);
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
      "Check the configuration and the data, print sizes, train nothing");
  verb.add_flag(
      "--help-config",
      flags->help_config,
      "List every configuration key with its default and meaning");
  verb.callback(
      [&program, flags] { program.run = [&program, flags] { run_train(*flags, program.out); }; });
}

}  // namespace seqconv::internal::cli
