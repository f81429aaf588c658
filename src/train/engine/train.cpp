#include <chrono>

#include "base/log.h"
#include "base/mapping_faults.h"
#include "base/markdown.h"
#include "base/options.h"
#include "base/signals.h"
#include "libtorch/backend/libtorch_errors.h"
#include "train/auto_settings.h"
#include "train/options.h"
#include "train/processes/processes.h"
#include "train/run_table.h"
#include "train/trainer.h"

#include "train/engine/functions.h"

namespace seqconv::internal::engine {

namespace {

void train(const TrainArguments& arguments, std::shared_ptr<Communicator> processes) {
  TrainRequest request;
  request.begun = std::chrono::steady_clock::now();
  Json table = Json::object();
  if (!arguments.config.empty())
    table = load_toml(arguments.config, arguments.configurations);
  if (table.is_object() && !table.contains("sizes") && says_nothing_of_sizes(table))
    table["sizes"] = std::string(enum_name(Sizes::kAuto));
  for (const std::string& assignment : arguments.overrides)
    apply_override(table, assignment);
  if (table.is_object() && table.contains("text") && table["text"].is_object())
    for (const auto& [key, value] : table["text"].items())
      request.named_text.insert(key);
  request.fits_lengths = find_key(table, "decoding.max_length_a") == nullptr &&
      find_key(table, "decoding.max_length_b") == nullptr;
  // From here on a first signal saves and leaves.
  catch_stop_signals();
  request.output = arguments.output;
  request.resume = arguments.resume;
  request.init_from = arguments.init_from;
  request.links = arguments.links;
  request.dry_run = arguments.dry_run;
  table = complete_table(std::move(table), request, *processes);
  request.config = read_train_config(table);
  request.config.data.links = arguments.links;
  set_threads(request.config.training.threads);
  report_mapping_faults();
  train_model(request, std::move(processes));
}

// "training" and "seed" of "training.seed".
std::pair<std::string, std::string> split_key(const std::string& key) {
  const size_t dot = key.find('.');
  if (dot == std::string::npos)
    return {"", key};
  return {key.substr(0, dot), key.substr(dot + 1)};
}

// Valid TOML: one section a layer's options, dotted keys within it.
std::string config_as_toml() {
  std::string text = "# Every key of a training configuration with its default. Paths are\n"
                     "# relative to the working directory. include = \"other.toml\" at the\n"
                     "# top, relative to the file, or include = \"NAME\", a configuration\n"
                     "# that comes with the program, is read first.\n";
  std::string section;
  for (const OptionRow& row : describe_options<TrainConfig>("")) {
    const auto [head, key] = split_key(row.key);
    if (head != section) {
      section = head;
      text += concat("\n[", section, "]\n");
    }
    text += concat("# ", row.help, "\n", key, " = ", row.standard, "\n");
  }
  return text;
}

std::string config_as_markdown() {
  std::string text = "# Configuration\n\n"
                     "Every key of the TOML file that `seqconv train` reads. A file names "
                     "only\n"
                     "what differs from the defaults; an unknown key is an error. Paths are\n"
                     "relative to the working directory. `include = \"other.toml\"` at the "
                     "top\n"
                     "(a path relative to the file; the name of a configuration that comes\n"
                     "with the program, such as `\"multi30k_sentencepiece\"`; or a list of "
                     "these)\n"
                     "is read first, and the file's own keys win. `--set KEY=VALUE` on the\n"
                     "command line wins over both.\n"
                     "Whole numbers are not negative. Where a list is wanted, a single entry\n"
                     "stands for a list of one; `[]` or `\"\"` gives a list its default "
                     "back,\n"
                     "whatever an included file says.\n\n"
                     "`seqconv train --help-config` prints the same as a TOML file. This page "
                     "is\n"
                     "written by `tools/make_reference.sh`.\n";
  std::string section = "none yet";
  for (const OptionRow& row : describe_options<TrainConfig>("")) {
    const auto [head, key] = split_key(row.key);
    if (head != section) {
      section = head;
      const std::string title = head.empty() ? "Top level" : concat("[", head, "]");
      text += concat(
          "\n## ",
          title,
          "\n\n",
          markdown_row({"key", "type", "default", "meaning"}),
          "|---|---|---|---|\n");
    }
    text += markdown_row(
        {markdown_code(key),
         markdown_text(row.type),
         markdown_code(row.standard),
         markdown_text(row.help)});
  }
  return text;
}

}  // namespace

void train(const TrainArguments& arguments) {
  const std::shared_ptr<Communicator> processes = open_communicator();
  if (!processes->is_first())
    set_log_level(LogLevel::kError);  // the first one speaks for all
  run_together(*processes, [&] { guarded([&] { train(arguments, processes); }); });
}

std::string describe_config(ConfigFormat format) {
  switch (format) {
    case ConfigFormat::kToml:
      return config_as_toml();
    case ConfigFormat::kMarkdown:
      return config_as_markdown();
  }
  fail("unknown format of a configuration's description");
}

}  // namespace seqconv::internal::engine
