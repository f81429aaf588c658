#include "seqconv/base/options.h"
#include "seqconv/base/signals.h"
#include "seqconv/train/options.h"
#include "seqconv/train/trainer.h"

#include "engine/verbs.h"

namespace seqconv::engine {

void train(const TrainArguments& arguments) {
  Json table = load_toml(arguments.config);
  for (const std::string& assignment : arguments.overrides)
    apply_override(table, assignment);
  TrainRequest request;
  request.config = read_train_config(table);
  request.output = arguments.output;
  request.resume = arguments.resume;
  request.init_from = arguments.init_from;
  request.dry_run = arguments.dry_run;
  set_threads(request.config.training.threads);
  // From here on a first signal saves and leaves.
  catch_stop_signals();
  train_model(request);
}

// Valid TOML: one section a layer's options, dotted keys within it.
std::string describe_config() {
  std::string text =
      "# Every key of a training configuration with its default. Paths are\n"
      "# relative to the working directory. include = \"other.toml\" at the\n"
      "# top, relative to the file, is read first.\n";
  std::string section;
  for (const auto& [key, value, help] : describe_options<TrainConfig>("")) {
    const size_t dot = key.find('.');
    const bool in_section = dot != std::string::npos;
    const std::string head = in_section ? key.substr(0, dot) : "";
    if (head != section) {
      section = head;
      text += concat("\n[", section, "]\n");
    }
    text += concat(
        "# ",
        help,
        "\n",
        in_section ? key.substr(dot + 1) : key,
        " = ",
        value,
        "\n");
  }
  return text;
}

}  // namespace seqconv::engine
