// One training step (forward, label-smoothed loss, backward, Adam) of a tiny
// translation model on random data without padding: target tokens per second.
// Shapes are those of the usual PyTorch comparison: 3+3 layers, width 256,
// feed-forward 512, 4 heads, 6,000 words.
//
//   train_step_bench [--block dynamicconv] [--tokens 864] [--length 16]
//                    [--threads 2] [--repeats 5] [--dropout 0.1]
//                    [--attention-dropout 0.1]

#include <ATen/Parallel.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <iostream>
#include <random>

#include "seqconv/base/options.h"
#include "seqconv/kernels/optimizer.h"
#include "seqconv/models/translation_model.h"
#include "seqconv/nn/flat_parameters.h"

namespace {

using namespace seqconv;
using Clock = std::chrono::steady_clock;

constexpr int64_t kVocabulary = 6000;

struct Settings {
  std::string block = "dynamicconv";
  int64_t tokens = 864;
  int64_t length = 16;
  int threads = 2;
  int repeats = 5;
  double dropout = 0.1;
  double attention_dropout = 0.1;
};

ModelOptions tiny_model(const Settings& settings) {
  ModelOptions options;
  options.dim = 256;
  options.ffn_dim = 512;
  options.dropout = options.activation_dropout = settings.dropout;
  options.attention_dropout = settings.attention_dropout;
  options.input_dropout = options.weight_dropout = settings.dropout;
  const auto kind = parse_enum<BlockKind>(settings.block, "--block");
  for (StackOptions* stack : {&options.encoder, &options.decoder}) {
    stack->layers = 3;
    stack->heads = 4;
    stack->block = {kind};
    stack->glu = kind != BlockKind::kSelfAttention;
    if (kind == BlockKind::kTalk)
      stack->max_offsets = {3, 7, 15};
    else if (kind != BlockKind::kSelfAttention)
      stack->kernel_sizes = {3, 7, 15};
  }
  return options;
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

void parallel(
    int64_t count,
    int64_t grain,
    const std::function<void(int64_t, int64_t)>& body) {
  at::parallel_for(0, count, grain, body);
}

class Step {
 public:
  explicit Step(const Settings& settings)
      : batch_(random_batch(settings)),
        model_(tiny_model(settings), kVocabulary, kVocabulary),
        flat_(*model_),
        first_(at::zeros_like(flat_.values())),
        second_(at::zeros_like(flat_.values())) {}

  double run() {
    ++update_;
    flat_.gradients().zero_();
    DropoutPlan plan({1, static_cast<uint64_t>(update_), 0});
    const auto sums = model_->loss(batch_, {.smoothing = 0.1}, plan);
    sums.loss.backward();
    kernels::adam_step(
        flat_.values().data_ptr<float>(),
        flat_.gradients().data_ptr<float>(),
        first_.data_ptr<float>(),
        second_.data_ptr<float>(),
        flat_.values().numel(),
        {.lr = 1e-4,
         .step = update_,
         .grad_scale = 1.0 / static_cast<double>(batch_.target_tokens)},
        parallel);
    return sums.loss.item<double>();
  }

  int64_t tokens() const { return batch_.target_tokens; }
  int64_t parameters() const { return flat_.parameter_count(); }

 private:
  Batch batch_;
  TranslationModel model_;
  FlatParameters flat_;
  at::Tensor first_, second_;
  int64_t update_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Training step of a tiny translation model");
  app.add_option("--block", settings.block, "What mixes along time");
  app.add_option("--tokens", settings.tokens, "Target tokens of a batch");
  app.add_option("--length", settings.length, "Tokens of a sentence");
  app.add_option("--threads", settings.threads, "Threads");
  app.add_option("--repeats", settings.repeats, "Timed steps");
  app.add_option("--dropout", settings.dropout, "All other dropouts");
  app.add_option(
      "--attention-dropout",
      settings.attention_dropout,
      "Dropout of attention probabilities");
  CLI11_PARSE(app, argc, argv);
  at::set_num_threads(settings.threads);

  Step step(settings);
  step.run();
  step.run();
  std::vector<double> times;
  for (int i = 0; i < settings.repeats; ++i) {
    const auto start = Clock::now();
    step.run();
    times.push_back(
        std::chrono::duration<double>(Clock::now() - start).count());
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
  std::cout << out.dump() << std::endl;
}
