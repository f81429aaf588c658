// Decoding speed on the CPU, of models with random weights and forced lengths:
// output tokens a second. Ours and a rival's take turns; each is given at its
// best way of sharing out the threads, median of the repeats.
//
//   decode_bench --size tiny --beam 5 1 --batch 32 --length 24
//   decode_bench --size iwslt --rival benchmarks/ctranslate2_rival.py
//   decode_bench --size tiny --backend runtime runtime:int8
//   decode_bench --preset wu-2019-table-3
//   decode_bench --size tiny --language --backend runtime libtorch

#include <ATen/Parallel.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iomanip>
#include <iostream>

#include "base/options.h"
#include "decode_presets.h"
#include "decode_runners.h"
#include "libtorch/backend/backend.h"
#include "random_model.h"
#include "runtime/runtime_backends.h"
#include "timing.h"

namespace {

using namespace seqconv::internal;
using namespace seqconv::bench;
using seqconv::ComputeType;
using seqconv::SamplingOptions;

struct Settings {
  std::string preset;
  std::string configs = "configs";
  std::vector<std::string> sizes = {"tiny"};
  std::string block = "dynamicconv";
  std::vector<std::string> overrides;
  std::vector<std::string> backends = {"runtime"};
  std::string rival;
  std::string rival_type = "float32";
  std::vector<int64_t> beams = {5};
  std::vector<int64_t> batches = {32};
  std::vector<int64_t> lengths = {24};
  int64_t source_length = 24;
  std::vector<std::string> threads = {"1x1", "1x2", "2x1"};
  int64_t words = 0;  // 0: as many as are usual
  bool language = false;
  std::string save;
  SamplingOptions sampling;
  int repeats = 5;
  double seconds = 1;
};

/// "2x1": two at a time, each with one thread.
struct Threads {
  int64_t replicas = 1;
  int64_t within = 1;
};

Threads parse_threads(const std::string& text) {
  Threads threads;
  char end = 0;
  if (std::sscanf(text.c_str(), "%ldx%ld%c", &threads.replicas, &threads.within, &end) != 2 ||
      threads.replicas < 1 || threads.within < 1)
    fail_usage("threads must be REPLICASxTHREADS, such as 2x1, but got ", text);
  return threads;
}

/// What a size's model mixes by; of a file its name says it.
std::string mixer_name(const Settings& settings, const std::string& size) {
  const std::filesystem::path file(size);
  return file.has_extension() ? file.stem().string() : settings.block;
}

ModelToRun sized(const Settings& settings, const std::string& size) {
  ModelToRun model = sized_model(size, parse_enum<MixerKind>(settings.block, "--block"));
  if (settings.words > 0)
    model.vocabulary = {settings.words, settings.words};
  if (settings.language) {
    model.options.encoder = ModelOptions::defaults(Task::kLanguageModel).encoder;
    model.options.norm = NormPlacement::kPre;
  }
  return model;
}

/// That of a size, or of a configuration, which ends in ".toml".
ModelToRun make_model(const Settings& settings, const std::string& size) {
  const Task task = settings.language ? Task::kLanguageModel : Task::kTranslation;
  ModelToRun model = size.ends_with(".toml")
      ? configured_model(size, task, settings.words > 0 ? settings.words : 32768)
      : sized(settings, size);
  Json table = write_options(model.options);
  for (const std::string& assignment : settings.overrides)
    apply_override(table, assignment);
  read_options(table, "", model.options);
  model.options.validate("model", task);
  return model;
}

/// Sizes and case for the rival: a Transformer of equal width and depth.
std::string describe(
    const Settings& settings,
    const ModelToRun& model,
    const DecodeCase& test,
    const Threads& threads) {
  const ModelOptions& options = model.options;
  return Json{
      {"encoder_layers", options.encoder.layers},
      {"decoder_layers", options.decoder.layers},
      {"dim", options.dim},
      {"ffn_dim", options.ffn_dim},
      {"heads", options.decoder.heads},
      {"vocabulary", model.vocabulary.target},
      {"compute_type", settings.rival_type},
      {"beam", test.beam},
      {"batch", test.batch},
      {"source_length", test.source_length},
      {"length", test.length},
      {"replicas", threads.replicas},
      {"threads", threads.within}}
      .dump();
}

/// Rows of one table: what is measured, and the ways it may share out threads.
struct Measured {
  std::string name;
  std::vector<std::unique_ptr<DecodeRunner>> ways;
};

void print_row(
    const std::string& name,
    const std::vector<double>& rates,
    const std::vector<std::unique_ptr<DecodeRunner>>& ways,
    double first) {
  const size_t best =
      static_cast<size_t>(std::max_element(rates.begin(), rates.end()) - rates.begin());
  std::cout << "| " << name << " | " << std::fixed << std::setprecision(0) << rates[best] << " | "
            << ways[best]->name() << " | " << std::setprecision(2) << first / rates[best] << " |\n"
            << std::flush;
}

/// All take turns, so that what slows the machine down slows down all.
void measure(const Settings& settings, const std::vector<Measured>& all) {
  std::vector<DecodeRunner*> runners;
  for (const Measured& measured : all)
    for (const auto& way : measured.ways)
      runners.push_back(way.get());
  for (DecodeRunner* runner : runners)
    runner->tokens_per_second(settings.seconds / 4);
  Samples samples;
  for (int repeat = 0; repeat < settings.repeats; ++repeat) {
    auto& sample = samples.emplace_back();
    for (DecodeRunner* runner : runners)
      sample.push_back(runner->tokens_per_second(settings.seconds));
  }
  const std::vector<double> rates = medians(samples);
  size_t next = 0;
  double first = 0;
  for (const Measured& measured : all) {
    const std::vector<double> own(
        rates.begin() + static_cast<std::ptrdiff_t>(next),
        rates.begin() + static_cast<std::ptrdiff_t>(next + measured.ways.size()));
    next += measured.ways.size();
    if (first == 0)
      first = *std::max_element(own.begin(), own.end());
    print_row(measured.name, own, measured.ways, first);
  }
}

void print_head(const std::string& what) {
  std::cout << "\n"
            << what << "\n\n"
            << "| | tokens/s | threads | first one's ratio |\n"
               "|---|---:|---|---:|\n";
}

/// "libtorch", "runtime", or "runtime:int8" and the like.
std::unique_ptr<BackendOpener> backend_called(const std::string& name) {
  if (name == "libtorch")
    return std::make_unique<TorchBackends>();
  const std::string kRuntime = "runtime";
  if (name == kRuntime)
    return std::make_unique<RuntimeBackends>();
  if (!name.starts_with(kRuntime + ":"))
    fail_usage("a backend must be libtorch, runtime or runtime:TYPE, but got ", name);
  return std::make_unique<RuntimeBackends>(
      parse_enum<ComputeType>(name.substr(kRuntime.size() + 1), "the type of a backend"));
}

/// The backends, opened once a size.
class Opened {
 public:
  Opened(const Settings& settings, ModelToRun model)
      : settings_(settings), model_(std::move(model)) {
    model_.parameters = folder_.path() / "model.safetensors";
    write_random_parameters(model_, settings.language ? Task::kLanguageModel : Task::kTranslation);
    for (const std::string& name : settings.backends) {
      const std::unique_ptr<BackendOpener> opener = backend_called(name);
      if (settings.language)
        language_.push_back(opener->language(model_));
      else
        translation_.push_back(opener->translation({model_}));
    }
  }

  const ModelToRun& model() const { return model_; }

  std::vector<Measured> language() const {
    std::vector<Measured> all;
    for (size_t i = 0; i < language_.size(); ++i) {
      Measured& own = all.emplace_back();
      own.name = settings_.backends[i];
      own.ways.push_back(
          generation_runner("1x1", language_[i], model_.vocabulary.target, settings_.sampling));
    }
    return all;
  }

  std::vector<Measured> translation(const std::string& model_name, const DecodeCase& test) const {
    std::vector<Measured> all;
    for (size_t i = 0; i < translation_.size(); ++i) {
      Measured& own = all.emplace_back();
      own.name = settings_.backends[i] + " " + model_name;
      for (const std::string& text : settings_.threads)
        if (const Threads threads = parse_threads(text); threads.within == 1)
          own.ways.push_back(backend_runner(
              text, translation_[i], model_.vocabulary.target, test, threads.replicas));
    }
    if (settings_.rival.empty())
      return all;
    Measured& rival = all.emplace_back();
    rival.name = "rival " + settings_.rival_type;
    for (const std::string& text : settings_.threads)
      rival.ways.push_back(rival_runner(
          settings_.rival, describe(settings_, model_, test, parse_threads(text)), text));
    return all;
  }

 private:
  const Settings& settings_;
  TemporaryFolder folder_;
  ModelToRun model_;
  std::vector<std::shared_ptr<const TranslationBackend>> translation_;
  std::vector<std::shared_ptr<const LanguageBackend>> language_;
};

/// One table of all models, the rival beside the first.
void run_preset(Settings settings) {
  const DecodePreset preset = decode_preset(settings.preset, settings.configs);
  print_head(concat(preset.title, ", length ", settings.lengths[0]));
  for (const NamedModel& row : preset.models) {
    const Opened opened(settings, row.model);
    measure(
        settings,
        opened.translation(
            row.name, {preset.beam, preset.batch, settings.source_length, settings.lengths[0]}));
    settings.rival.clear();
  }
}

void run(const Settings& settings) {
  at::set_num_threads(1);
  if (!settings.save.empty())
    return save_random_model(make_model(settings, settings.sizes[0]), settings.save);
  if (!settings.preset.empty())
    return run_preset(settings);
  for (const std::string& size : settings.sizes) {
    const Opened opened(settings, make_model(settings, size));
    if (settings.language) {
      print_head(concat(size, ", a language model, one text"));
      measure(settings, opened.language());
      continue;
    }
    for (const int64_t length : settings.lengths)
      for (const int64_t beam : settings.beams)
        for (const int64_t batch : settings.batches) {
          print_head(concat(size, ", beam ", beam, ", batch ", batch, ", length ", length));
          measure(
              settings,
              opened.translation(
                  mixer_name(settings, size), {beam, batch, settings.source_length, length}));
        }
  }
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Decoding speed of models with random weights on the CPU");
  app.add_option("--preset", settings.preset, "Rows of a paper's table");
  app.add_option("--configs", settings.configs, "Folder of configurations");
  app.add_option("--size", settings.sizes, "tiny, iwslt, base, big, or a configuration (TOML)");
  app.add_option("--words", settings.words, "Words; 0: those of a size, or 32768");
  app.add_option("--block", settings.block, "What mixes along time");
  app.add_option("--set", settings.overrides, "KEY=VALUE of [model]")->take_all()->expected(1);
  app.add_option("--backend", settings.backends, "runtime, libtorch");
  app.add_option("--rival", settings.rival, "Program that is compared");
  app.add_option("--rival-type", settings.rival_type, "Its type of numbers");
  app.add_option("--beam", settings.beams, "Beams");
  app.add_option("--batch", settings.batches, "Sentences of a batch");
  app.add_option("--length", settings.lengths, "Tokens that are made");
  app.add_option("--source-length", settings.source_length, "Source tokens");
  app.add_option("--threads", settings.threads, "REPLICASxTHREADS");
  app.add_flag("--language", settings.language, "A language model");
  app.add_option("--top-k", settings.sampling.top_k, "Of its draws; 0: all");
  app.add_option("--save", settings.save, "Only write the model, as this folder");
  app.add_option("--repeats", settings.repeats, "Turns");
  app.add_option("--seconds", settings.seconds, "Least time of a turn");
  CLI11_PARSE(app, argc, argv);
  try {
    run(settings);
  } catch (const std::exception& error) {
    std::cerr << "decode_bench: " << error.what() << "\n";
    return 1;
  }
}
