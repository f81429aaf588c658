#include <algorithm>
#include <filesystem>
#include <sstream>

#include "base/characters.h"
#include "base/files.h"
#include "base/log.h"
#include "base/safetensors.h"
#include "cli/flags.h"
#include "cli/inspection.h"
#include "cli/program.h"
#include "cli/report/charts.h"
#include "cli/report/html.h"
#include "model/model_checkpoints.h"
#include "model/model_description.h"
#include "pipeline/translator.h"
#include "runtime/runtime_backends.h"

namespace seqconv::internal::cli {
namespace fs = std::filesystem;
namespace {

enum class InspectFormat { kHtml, kSvg };

}  // namespace
}  // namespace seqconv::internal::cli

template <>
struct seqconv::internal::EnumNames<seqconv::internal::cli::InspectFormat> {
  static constexpr auto kNames =
      std::to_array<std::pair<std::string_view, seqconv::internal::cli::InspectFormat>>(
          {{"html", seqconv::internal::cli::InspectFormat::kHtml},
           {"svg", seqconv::internal::cli::InspectFormat::kSvg}});
};

namespace seqconv::internal::cli {
namespace {

constexpr const char* kInspectExamples =
    "Writes one page that needs nothing beside it: the curves of the model's\n"
    "training and of other runs, its kernels and, for a sentence, what each\n"
    "position looks at. With --format svg only the curves, as files of a "
    "folder.\n"
    "\n"
    "Examples:\n"
    "  seqconv inspect --model runs/numbers --output report.html\n"
    "  seqconv inspect --model runs/numbers --text '1 2 3' --output r.html\n"
    "  seqconv inspect --model a --run b --run c --output curves --format svg";

/// A map of more is no longer readable.
constexpr size_t kMostSymbols = 200;

struct InspectFlags {
  RootedPath model;
  std::string checkpoint = kBestCheckpoint;
  std::string text;
  CLI::Option* text_given = nullptr;
  std::vector<std::string> runs;
  std::string output;
  InspectFormat format = InspectFormat::kHtml;
};

void check_flags(const InspectFlags& flags) {
  if (flags.text_given->count() == 0)
    return;
  if (flags.format == InspectFormat::kSvg)
    fail_usage("--text is for pages; --format svg writes the curves of runs");
  if (is_blank(flags.text))
    fail_usage("--text must hold words, but got '", flags.text, "'");
}

/// The model's own run, if it has one, and those of --run.
void read_runs(const InspectFlags& flags, const ModelFiles& files, Inspected& model) {
  std::vector<fs::path> paths;
  std::vector<RootedPath> found;
  if (const auto own = report::metrics_file(files.folder)) {
    paths.push_back(files.folder);
    found.push_back(*own);
  }
  for (const std::string& run : flags.runs) {
    const auto file = report::metrics_file({run, flags.model.links()});
    if (!file)
      fail("the run '", run, "' is no folder with training/metrics.jsonl and no .jsonl file");
    paths.emplace_back(run);
    found.push_back(*file);
  }
  if (paths.size() > report::kMostRuns)
    fail_usage("at most ", report::kMostRuns, " runs stand side by side, but got ", paths.size());
  const std::vector<std::string> names = report::run_names(paths);
  for (size_t i = 0; i < paths.size(); ++i) {
    try {
      model.runs.push_back(report::read_run(found[i], names[i]));
    } catch (const Error& error) {
      if (i >= found.size() - flags.runs.size())
        throw;
      // Nobody asked for the model's own curves.
      model.notes.emplace_back(error.what());
      continue;
    }
    for (const std::string& note : model.runs.back().notes)
      model.notes.push_back(note);
  }
  for (const std::string& note : model.notes)
    log_warning(note);
}

/// The translation by the model's own search, and beside it all that it looks at.
SentenceProbe probe_translator(const InspectFlags& flags, const ModelFiles& files) {
  return probe_translated(
      files,
      {flags.text, "--text", kMostSymbols},
      [&](const TranslationRequest& request) -> TranslationResult {
        const TranslationSystem system = open_translation({flags.model}, RuntimeBackends());
        TranslatorOptions options;
        options.search = system.decoding;
        return Translator(system, options).translate({{request}}).at(0);
      });
}

void probe_sentence(const InspectFlags& flags, const ModelFiles& files, Inspected& model) {
  const bool translates = task_of_model(files.folder) == Task::kTranslation;
  if (flags.text_given->count() == 0) {
    model.sentence = probe_alone(files);
    return;
  }
  model.sentence = translates ? probe_translator(flags, files)
                              : probe_read(files, {flags.text, "--text", kMostSymbols});
  model.facts.emplace_back(translates ? "sentence" : "text", flags.text);
  if (translates)
    model.facts.emplace_back("translation", model.sentence.translation);
  for (const std::string& note : model.sentence.notes) {
    log_warning(note);
    model.notes.push_back(note);
  }
}

void add_facts(const ModelFiles& files, Inspected& model) {
  model.facts.emplace_back("task", std::string(enum_name(task_of_model(files.folder))));
  model.facts.emplace_back(
      "parameters", concat(parameter_count(parameters_of_model(files.folder))));
  model.facts.emplace_back("file", files.parameters.string());
  const SafetensorsReader reader(files.parameters);
  for (const auto& [key, value] : reader.metadata())
    if (key == "update" || key == "epoch")
      model.facts.emplace_back(key, value);
}

/// Error for a drawing of somebody else in a chart's place.
void check_own_chart(const fs::path& file) {
  std::error_code none;
  SEQCONV_CHECK(
      !fs::exists(file, none) || report::is_svg_file(read_file({file, Links::kAnywhere})),
      "'",
      file.string(),
      "' would be lost, and is no chart of this program: choose another --output");
}

void write_charts(const InspectFlags& flags, const Inspected& model) {
  if (model.runs.empty())
    fail(
        "there are no curves to draw: '",
        flags.model.string(),
        "' has no training/metrics.jsonl with records, and no --run is given");
  const fs::path folder = flags.output;
  check_output_folder(folder);
  create_folder(folder);
  for (const report::Chart& chart : report::training_charts(model.runs)) {
    const fs::path file = folder / (chart.id + ".svg");
    check_own_chart(file);
    write_file_atomically(file, report::svg_file(chart));
    log_info("wrote ", file.string());
  }
}

void run_inspect(const InspectFlags& flags) {
  check_flags(flags);
  const ModelFiles files = find_model(choose_checkpoint(flags.model, flags.checkpoint));
  Inspected model;
  read_runs(flags, files, model);
  if (flags.format == InspectFormat::kSvg)
    return write_charts(flags, model);
  check_output_file(flags.output, files);
  add_facts(files, model);
  probe_sentence(flags, files, model);
  const std::string title = concat("Model ", report::run_names({files.folder}).at(0));
  write_file_atomically(flags.output, report::page(title, inspection_body(title, model)));
  log_info("wrote ", flags.output);
}

}  // namespace

void add_inspect(Program& program) {
  auto flags = std::make_shared<InspectFlags>();
  CLI::App& verb = program.add_verb(
      "inspect", "Draw a model's training, kernels and attention as one page", kInspectExamples);
  add_model(verb, flags->model);
  add_checkpoint(verb, flags->checkpoint);
  flags->text_given =
      verb.add_option("--text", flags->text, "Sentence whose way through the model is shown [none]")
          ->type_name("TEXT");
  add_repeated(
      verb,
      "--run",
      flags->runs,
      R"(Model folder whose training stands beside the model's own, or its metrics.jsonl)")
      ->type_name("DIR");
  verb.add_option("-o,--output", flags->output, "The page, or with --format svg a folder")
      ->type_name("FILE")
      ->required();
  add_choice(verb, "--format", flags->format, "html: the page; svg: the curves alone");
  verb.callback([&program, flags] { program.run = [flags] { run_inspect(*flags); }; });
}

}  // namespace seqconv::internal::cli
