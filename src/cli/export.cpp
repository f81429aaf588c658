#include "model/checkpoint/export.h"

#include <memory>

#include "cli/flags.h"
#include "cli/program.h"

namespace seqconv::internal::cli {
namespace {

constexpr const char* kExportExamples =
    "Formats: fairseq, a checkpoint that fairseq (LightConv, DynamicConv) or\n"
    "the TaLK repository reads, with the model's settings; pytorch, a\n"
    "dictionary of the parameters under their own names. Both are files for\n"
    "torch.load(FILE, weights_only=True).\n"
    "\n"
    "Examples:\n"
    "  seqconv export --format pytorch runs/my parameters.pt\n"
    "  seqconv export --format fairseq runs/my checkpoint.pt";

struct ExportFlags {
  ExportFormat format = ExportFormat::kPytorch;
  RootedPath model;
  std::string output;
};

}  // namespace

void add_export(Program& program) {
  auto flags = std::make_shared<ExportFlags>();
  CLI::App& verb =
      program.add_verb("export", "Write a model's parameters as a PyTorch file", kExportExamples);
  add_choice(verb, "--format", flags->format, "fairseq or pytorch")->required();
  add_path(verb, "DIR", flags->model, "Model folder or checkpoint")->type_name("")->required();
  verb.add_option("OUT", flags->output, "File to write")->required();
  add_follow_links(verb, flags->model);
  verb.callback([&program, flags] {
    program.run = [flags] { export_model(flags->model, flags->format, flags->output); };
  });
}

}  // namespace seqconv::internal::cli
