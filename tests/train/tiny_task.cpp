#include "tiny_task.h"

#include <algorithm>
#include <random>
#include <sstream>

#include "base/files.h"
#include "base/log.h"
#include "base/options.h"
#include "base/safetensors.h"
#include "base/signals.h"

namespace seqconv::internal::testing {

ModelOptions tiny_model(MixerKind kind) {
  ModelOptions options;
  options.dim = 32;
  options.ffn_dim = 64;
  options.dropout = options.input_dropout = 0;
  options.max_positions = 64;
  for (StackOptions* stack : {&options.encoder, &options.decoder}) {
    stack->layers = 1;
    stack->block = {kind};
    stack->heads = 4;
    stack->glu = kind == MixerKind::kLightConv || kind == MixerKind::kDynamicConv ||
        kind == MixerKind::kTalk;
    stack->kernel_sizes = {kind == MixerKind::kSelfAttention ? 0 : 3};
    if (kind == MixerKind::kTalk || kind == MixerKind::kAverageAttention)
      stack->kernel_sizes = {};
    if (kind == MixerKind::kTalk)
      stack->max_offsets = {3};
  }
  return options;
}

TinyTask::TinyTask() {
  set_log_level(LogLevel::kError);
  set_stop_signal(0);
  write_pairs("train", 120, 1, /*reversed=*/true);
  write_pairs("valid", 20, 2, /*reversed=*/true);
  config_.data.train_source = {path("train.source")};
  config_.data.train_target = {path("train.target")};
  config_.data.valid_source = {path("valid.source")};
  config_.data.valid_target = {path("valid.target")};
  config_.text.subword = Subword::kNone;
  config_.model = tiny_model(MixerKind::kDynamicConv);
  config_.batching.max_tokens = 64;
  config_.training.max_updates = 12;
  config_.training.log_every = 1;
  config_.training.threads = 1;  // nothing here is worth a second one
  config_.schedule.learning_rate = 3e-3;
  config_.schedule.warmup_updates = 20;
  config_.decoding.beam = 1;
  config_.decoding.max_length_b = 20;
}

void TinyTask::write_pairs(const std::string& name, int64_t pairs, uint64_t seed, bool reversed) {
  std::mt19937_64 random(seed);
  std::string source;
  std::string target;
  for (int64_t i = 0; i < pairs; ++i) {
    std::string digits(2 + random() % 5, '0');
    for (char& digit : digits)
      digit = static_cast<char>('0' + random() % 10);
    const auto append = [](std::string& text, const std::string& word) {
      for (const char digit : word)
        text += {digit, ' '};
      text.back() = '\n';
    };
    append(source, digits);
    if (reversed)
      std::reverse(digits.begin(), digits.end());
    append(target, digits);
  }
  folder_.write(name + ".source", source);
  folder_.write(name + ".target", target);
}

void TinyTask::join_digits(const std::string& name) {
  std::string text = read_file(path(name));
  for (size_t at = 0; (at = text.find("1 ", at)) != std::string::npos;)
    text.erase(at + 1, 1);
  folder_.write(name, text);
}

TrainRequest TinyTask::request(const std::string& output) const {
  TrainRequest request;
  request.config = config_;
  request.output = path(output);
  return request;
}

void TinyTask::train(
    const TrainRequest& request,
    const std::function<void(const RunSetup&, const Position&)>& after_batch,
    std::shared_ptr<Communicator> communicator) {
  request.config.validate();
  check_output(request);
  RunSetup setup = set_up_run(request, std::move(communicator));
  const RunSetup copy = setup;  // the model is shared
  setup.after_batch = [copy, after_batch](const Position& position) {
    after_batch(copy, position);
  };
  TrainLoop(std::move(setup)).run();
}

std::vector<Json> TinyTask::records(const std::string& output, const std::string& kind) const {
  std::istringstream lines(read_file(path(output) / "training" / "metrics.jsonl"));
  std::vector<Json> found;
  for (std::string line; std::getline(lines, line);) {
    Json record = Json::parse(line);
    if (record.at("kind") == kind)
      found.push_back(std::move(record));
  }
  return found;
}

std::map<std::string, std::string> tensors_of(const std::filesystem::path& file) {
  const SafetensorsReader reader(file);
  std::map<std::string, std::string> tensors;
  for (const auto& [name, view] : reader.tensors())
    tensors[name].assign(reinterpret_cast<const char*>(view.data.data()), view.data.size());
  return tensors;
}

}  // namespace seqconv::internal::testing
