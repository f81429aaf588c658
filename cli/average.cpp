#include <filesystem>
#include <set>

#include "flags.h"
#include "program.h"
#include "seqconv/base/atomic_file.h"
#include "seqconv/base/average_safetensors.h"
#include "seqconv/base/files.h"
#include "seqconv/base/log.h"
#include "seqconv/checkpoint/model_description.h"
#include "seqconv/checkpoint/parameters.h"

namespace seqconv::cli {
namespace fs = std::filesystem;
namespace {

constexpr const char* kAverageExamples =
    "The checkpoints must be of one architecture and one vocabulary. The\n"
    "output is a complete model folder.\n"
    "\n"
    "Examples:\n"
    "  seqconv average --output runs/mean \\\n"
    "    runs/a/training/checkpoints/*.safetensors\n"
    "  seqconv average --output runs/mean runs/seed1 runs/seed2";

struct AverageFlags {
  std::string output;
  std::vector<std::string> inputs;
};

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

void run_average(const AverageFlags& flags) {
  std::vector<ModelFiles> models;
  std::vector<fs::path> checkpoints;
  std::vector<ParameterShape> parameters;
  for (const std::string& input : flags.inputs) {
    models.push_back(find_model(input));
    checkpoints.push_back(models.back().parameters);
    check_same(models.front(), models.back());
    if (parameters.empty())  // all of them have those of the first
      parameters = parameters_of_model(models.front().folder);
    const SafetensorsReader reader(checkpoints.back());
    refuse_int8(reader, "average");
    check_parameters(reader, parameters);
  }
  const fs::path output = flags.output;
  for (const ModelFiles& model : models)
    check_other_folder(output, model);
  check_output_folder(output);
  create_folder(output);
  average_safetensors(
      checkpoints,
      output / "model.safetensors",
      {{"averaged", std::to_string(checkpoints.size())}});
  const fs::path& first = models.front().folder;
  copy_text_files(first, output);
  write_file_atomically(
      output / "config.json",
      read_file(first / "config.json"));
  log_info(
      "averaged ",
      checkpoints.size(),
      " checkpoints into ",
      output.string());
}

}  // namespace

void add_average(Program& program) {
  auto flags = std::make_shared<AverageFlags>();
  CLI::App& verb = program.add_verb(
      "average",
      "Average the parameters of checkpoints",
      kAverageExamples);
  verb.add_option("-o,--output", flags->output, "Model folder to write")
      ->type_name("DIR")
      ->required();
  verb.add_option(
          "CHECKPOINT",
          flags->inputs,
          ".safetensors files inside model folders, or model folders")
      ->required();
  verb.callback(
      [&program, flags] { program.run = [flags] { run_average(*flags); }; });
}

}  // namespace seqconv::cli
