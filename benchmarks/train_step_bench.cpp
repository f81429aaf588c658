// One training step (forward, label-smoothed loss, backward, Adam) of a tiny
// translation model on random data without padding: target tokens per second.
// Shapes are those of the usual PyTorch comparison: 3+3 layers, width 256,
// feed-forward 512, 4 heads, 6,000 words.
//
//   train_step_bench [--block dynamicconv] [--no-glu] [--tokens 864]
//                    [--length 16] [--threads 2] [--repeats 5]
//                    [--dropout 0.1] [--attention-dropout 0.1] [--device cpu]
//                    [--precision float32]

#include <ATen/Parallel.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <iostream>
#include <random>

#include "base/options.h"
#include "libtorch/backend/device.h"
#include "libtorch/models/translation_model.h"
#include "libtorch/nn/flat_parameters.h"
#include "train/updates.h"

namespace {

using namespace seqconv::internal;
using Clock = std::chrono::steady_clock;

constexpr int64_t kVocabulary = 6000;

struct Settings {
  std::string block = "dynamicconv";
  bool glu = true;
  int64_t tokens = 864;
  int64_t length = 16;
  int threads = 2;
  int repeats = 5;
  double dropout = 0.1;
  double attention_dropout = 0.1;
  std::string device = "cpu";
  std::string precision = "float32";
};

ModelOptions tiny_model(const Settings& settings) {
  ModelOptions options;
  options.dim = 256;
  options.ffn_dim = 512;
  options.dropout = options.activation_dropout = settings.dropout;
  options.attention_dropout = settings.attention_dropout;
  options.input_dropout = options.weight_dropout = settings.dropout;
  const auto kind = parse_enum<MixerKind>(settings.block, "--block");
  for (StackOptions* stack : {&options.encoder, &options.decoder}) {
    stack->layers = 3;
    stack->heads = 4;
    stack->block = {kind};
    stack->glu = settings.glu && kind != MixerKind::kSelfAttention;
    if (kind == MixerKind::kTalk)
      stack->max_offsets = {3, 7, 15};
    else if (kind != MixerKind::kSelfAttention)
      stack->kernel_sizes = {3, 7, 15};
  }
  return options;
}

TrainConfig run_config(const Settings& settings) {
  TrainConfig config;
  config.training.precision = parse_enum<Precision>(settings.precision, "--precision");
  return config;
}

Batch random_batch(const Settings& settings) {
  std::mt19937 random(1);
  const auto side = [&] {
    std::vector<std::vector<int32_t>> rows(settings.tokens / settings.length);
    for (auto& row : rows)
      for (int64_t i = 0; i + 1 < settings.length; ++i)
        row.push_back(4 + static_cast<int32_t>(random() % (kVocabulary - 4)));
    return rows;
  };
  return make_batch(side(), side());
}

class Step {
 public:
  explicit Step(const Settings& settings)
      : config_(run_config(settings)),
        batch_(random_batch(settings)),
        model_(
            tiny_model(settings),
            kVocabulary,
            kVocabulary,
            1,
            open_device(parse_device_name("--device", settings.device))),
        flat_(*model_),
        optimizer_(config_.optimizer, flat_.values()),
        average_({}, flat_.values()),
        gradients_(*model_, flat_, std::make_shared<SingleProcess>()),
        updates_(make_updates(
            {config_,
             *model_,
             flat_,
             optimizer_,
             average_,
             gradients_,
             position_,
             [] {},
             {.on = config_.training.precision == Precision::kFloat16}})) {}

  /// Ends when the device has made the update.
  void run() {
    ++position_.update;
    updates_->add_batch(batch_, {.seed = 1, .update = static_cast<uint64_t>(position_.update)});
    updates_->end({.learning_rate = 1e-4});
    updates_->read();
  }

  int64_t tokens() const { return batch_.target_tokens; }
  int64_t parameters() const { return flat_.parameter_count(); }

 private:
  TrainConfig config_;
  Batch batch_;
  TranslationModel model_;
  FlatParameters flat_;
  Optimizer optimizer_;
  ParameterAverage average_;
  GradientSum gradients_;
  Position position_;
  std::unique_ptr<Updates> updates_;
};

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Training step of a tiny translation model");
  app.add_option("--block", settings.block, "What mixes along time");
  app.add_flag("!--no-glu", settings.glu, "Project without a gated linear unit");
  app.add_option("--tokens", settings.tokens, "Target tokens of a batch");
  app.add_option("--length", settings.length, "Tokens of a sentence");
  app.add_option("--threads", settings.threads, "Threads");
  app.add_option("--repeats", settings.repeats, "Timed steps");
  app.add_option("--dropout", settings.dropout, "All other dropouts");
  app.add_option(
      "--attention-dropout", settings.attention_dropout, "Dropout of attention probabilities");
  app.add_option("--device", settings.device, "cpu, cuda, cuda:N or auto");
  app.add_option("--precision", settings.precision, "float32, bfloat16 or float16");
  CLI11_PARSE(app, argc, argv);
  at::set_num_threads(settings.threads);

  Step step(settings);
  step.run();
  step.run();
  std::vector<double> times;
  for (int i = 0; i < settings.repeats; ++i) {
    const auto start = Clock::now();
    step.run();
    times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2];
  Json out = Json::object();
  out["block"] = settings.block;
  out["tokens"] = step.tokens();
  out["parameters"] = step.parameters();
  out["target_tokens_per_s"] = static_cast<double>(step.tokens()) / median;
  out["ms"] = median * 1e3;
  out["spread_ms"] = {times.front() * 1e3, times.back() * 1e3};
  out["threads"] = settings.threads;
  out["device"] = settings.device;
  out["precision"] = settings.precision;
  std::cout << out.dump() << std::endl;
}
