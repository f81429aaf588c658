#include "model/quantize.h"

#include <memory>

#include "base/log.h"
#include "cli/flags.h"
#include "cli/program.h"
#include "model/model_checkpoints.h"

namespace seqconv::internal::cli {
namespace {

constexpr const char* kQuantizeExamples =
    "The output is a model folder of about a quarter of the size, for\n"
    "translate, score, perplexity and generate. It cannot be trained,\n"
    "averaged or exported: keep the model that it was made from.\n"
    "\n"
    "Examples:\n"
    "  seqconv quantize --model runs/my --output runs/my-int8\n"
    "  seqconv translate --model runs/my-int8 < in.txt > out.txt";

struct QuantizeFlags {
  RootedPath model;
  std::string checkpoint = kBestCheckpoint;
  std::string output;
};

}  // namespace

void add_quantize(Program& program) {
  auto flags = std::make_shared<QuantizeFlags>();
  CLI::App& verb = program.add_verb(
      "quantize", "Round a model's matrices to 8 bits: smaller and quicker", kQuantizeExamples);
  add_path(verb, "--model", flags->model, "Model folder or checkpoint")
      ->type_name("DIR")
      ->required();
  add_checkpoint(verb, flags->checkpoint);
  verb.add_option("-o,--output", flags->output, "Model folder to write")
      ->type_name("DIR")
      ->required();
  add_follow_links(verb, flags->model);
  verb.callback([&program, flags] {
    program.run = [flags] {
      quantize_model(choose_checkpoint(flags->model, flags->checkpoint), flags->output);
      log_info("wrote the model in int8 to ", flags->output);
    };
  });
}

}  // namespace seqconv::internal::cli
