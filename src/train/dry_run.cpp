#include "train/dry_run.h"

#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <iomanip>
#include <sstream>

#include "base/files.h"
#include "base/log.h"
#include "base/options.h"
#include "text/corpus/batcher.h"
#include "text/corpus/fairseq_data.h"
#include "text/packed_text.h"
#include "train/data_options.h"
#include "train/held_out.h"
#include "train/processes/batch_share.h"
#include "train/progress.h"
#include "train/run_plan.h"
#include "train/run_setup.h"
#include "train/settings.h"
#include "train/training_speed.h"

namespace seqconv::internal {
namespace fs = std::filesystem;
namespace {

/// Larger files are not learned from and encoded just to be counted.
constexpr uintmax_t kMostBytes = uintmax_t{64} << 20;

/// A folder that goes away again.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = fs::temp_directory_path() / "seqconv-dry-run-XXXXXX";
    SEQCONV_CHECK(
        ::mkdtemp(name.data()) != nullptr,
        "cannot create folder '",
        name,
        "': ",
        std::strerror(errno));
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

void check_writable(const fs::path& output) {
  fs::path existing = fs::absolute(output).lexically_normal();
  while (!fs::exists(existing) && existing.has_relative_path())
    existing = existing.parent_path();
  SEQCONV_CHECK(
      fs::is_directory(existing),
      "cannot create folder '",
      output.string(),
      "': '",
      existing.string(),
      "' is there and not a folder");
  SEQCONV_CHECK(
      ::access(existing.c_str(), W_OK) == 0,
      "cannot write into '",
      existing.string(),
      "': ",
      std::strerror(errno));
}

/// Bytes of training data.
struct TrainingSize {
  uintmax_t bytes = 0;
  bool is_whole = true;  ///< false where counting has ended before
};

/// Packed text is counted until it is too much.
void add_text_file(const RootedPath& file, TrainingSize& size) {
  if (PackedText(file).packing().empty()) {
    size.bytes += fs::file_size(file.path());
    return;
  }
  const uintmax_t bytes = count_text_bytes(file, kMostBytes + 1);
  size.bytes += bytes;
  size.is_whole = size.is_whole && bytes <= kMostBytes;
}

TrainingSize training_size(const DataOptions& data) {
  TrainingSize size;
  std::vector<TextSource> sources;
  for (const auto* files : {&data.train_source, &data.train_target})
    sources.insert(sources.end(), files->begin(), files->end());
  for (const std::string& file : data.train)
    sources.push_back(data.source_of(file, PairSide::kSource));
  for (const TextSource& source : sources)
    if (holds_ids(source))
      size.bytes += fs::file_size(fairseq_files(source.file).data);
    else
      for (const RootedPath& file : files_of(source))
        add_text_file(file, size);
  return size;
}

/// "0.031", "2.4", "310": three digits, or all of those before the point.
std::string rounded(double number) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(number < 1 ? 3 : number < 100 ? 1 : 0) << number;
  return text.str();
}

std::string megabytes(int64_t bytes) {
  return concat((bytes + (1 << 19)) >> 20, " MiB");
}

void report_updates(const TrainConfig& config, int64_t batches) {
  const int64_t updates = updates_per_epoch(batches, config.training.accumulate);
  std::string total;
  if (config.training.max_epochs > 0)
    total = concat(
        ", ", updates * config.training.max_epochs, " in ", config.training.max_epochs, " epochs");
  if (config.training.max_updates > 0)
    total += concat(", at most ", config.training.max_updates);
  if (config.training.max_minutes > 0)
    total += concat(", within ", config.training.max_minutes, " minutes");
  log_info("an epoch has ", batches, " batches and ", updates, " updates", total);
}

void report_model(const TrainRequest& request, const TrainingTask& task, int64_t processes) {
  const TrainConfig& config = request.config;
  const int64_t count = task.model()->parameter_count();
  log_info(vocabulary_text(task));
  log_info("parameters: ", count);
  const MemoryEstimate memory = estimate_memory(
      config,
      {.parameters = count,
       .target_vocabulary = task.target_vocabulary(),
       .processes = processes,
       .on_cpu = request.device.is_cpu()});
  const bool shares = processes > 1 && config.training.shard_optimizer;
  log_info(
      "memory",
      processes > 1 ? concat(" of each of ", processes, " processes") : "",
      ", roughly: ",
      megabytes(memory.parameters),
      " for parameters, gradients and ",
      shares ? "a share of the optimiser's state, " : "optimiser, ",
      megabytes(memory.activations),
      " for a batch of ",
      config.batching.max_tokens,
      " tokens, and the libraries");
}

/// Says how fast the scratch model of `setup` is trained, and what the run will be at that pace;
/// an epoch has `batches`.
void report_speed(const TrainRequest& request, RunSetup setup, int64_t batches, int64_t processes) {
  const int64_t valid_batches =
      setup.data.valid ? Batcher(setup.data.valid->samples, request.config.batching, 0).size() : 0;
  const std::optional<TrainingSpeed> speed = measure_speed(std::move(setup));
  if (!speed)
    return;
  const double share = static_cast<double>(processes);
  log_info(
      "speed, by ",
      speed->updates,
      speed->updates == 1 ? " update" : " updates",
      " of a scratch model",
      processes > 1 ? concat(" in one of ", processes, " processes, times ", processes) : "",
      ": ",
      std::llround(share * speed->tokens_per_second),
      " target tokens/s, ",
      rounded(share * 60 / speed->seconds_per_update),
      " updates a minute");
  const RunForecast forecast =
      forecast_run(request.config, batches, valid_batches, speed->seconds_per_update / share);
  if (forecast.updates == 0)
    return;
  log_info(
      "the run will have about ",
      forecast.updates,
      " updates, ",
      rounded(forecast.epochs),
      " epochs, and take ",
      duration_text(forecast.seconds),
      "; ",
      forecast.warmup,
      " updates (",
      std::llround(
          100.0 * static_cast<double>(forecast.warmup) / static_cast<double>(forecast.updates)),
      " %) are warm-up");
}

void report_new_run(const TrainRequest& request, int64_t processes) {
  TrainConfig config = request.config;
  if (!holds_out(config))
    check_validation_text(config, /*goes_on=*/false);
  const TrainingSize size = request.init_from.empty() ? training_size(config.data) : TrainingSize();
  if (size.bytes > kMostBytes) {
    log_info(
        "subwords, vocabularies and ids would be made of ",
        size.is_whole ? "" : "more than ",
        megabytes(static_cast<int64_t>(size.bytes)),
        " of training data; sizes that depend on them are not known before");
    return;
  }
  const TemporaryFolder folder;
  const fs::path training = folder.path() / "training";
  if (holds_out(config)) {
    create_folder(training);
    config.data.held_out = hold_out(config, training);
    check_validation_text(config, /*goes_on=*/false);
  }
  const auto task = make_task(config, request.device);
  task->create(request);
  RunSetup setup;
  setup.config = config;
  setup.communicator = std::make_shared<SingleProcess>();
  setup.folder.root = folder.path();
  setup.task = task;
  setup.data = prepare_data(training / "data", Json::object(), task->recipes());
  const PreparedData& data = setup.data;
  report_data(data);
  report_model(request, *task, processes);
  const auto seed = static_cast<uint64_t>(config.training.seed);
  const int64_t batches = Batcher(data.train.samples, config.batching, seed).size();
  report_updates(config, batches);
  report_speed(request, std::move(setup), batches, processes);
}

void report_resumed_run(const TrainRequest& request) {
  const RunFolder folder{{request.output, request.links}};
  const SavedState saved = read_state(folder.state());
  resumed_settings(saved.settings, write_options(request.config));
  log_info(
      "the run would go on in epoch ",
      saved.position.epoch,
      " after batch ",
      saved.position.batch,
      " and update ",
      saved.position.update);
}

/// Of what is as large as the parameters.
int64_t parameter_bytes(const TrainConfig& config, const RunSize& size) {
  const TrainingOptions& training = config.training;
  int64_t each = 8;  // values and gradients, in float32 always
  if (training.precision != Precision::kFloat32)
    each += 2;  // the values once more, for products
  if (size.processes > 1 && size.on_cpu)
    each += 4;  // MPI's copies of the gradients that it is adding up
  const int64_t state = (config.optimizer.kind == OptimizerKind::kAdam ? 8 : 4) +
      (training.average().is_kept() ? 4 : 0);
  const int64_t sharers = training.shard_optimizer ? size.processes : 1;
  return each * size.parameters + state * size.parameters / sharers;
}

/// Of what autograd keeps for a token.
int64_t token_bytes(const TrainConfig& config, const RunSize& size) {
  const ModelOptions& model = config.model;
  // Residuals, norms, projections (6 widths a layer, 4 of the convolution), the
  // feed-forward block, keys and values in the decoder.
  const auto layers = [&](const StackOptions& stack, int64_t widths) {
    int64_t numbers = 0;
    for (int64_t layer = 0; layer < stack.layers; ++layer)
      numbers += widths * model.dim + 4 * stack.conv_dim_at(layer, model.dim) +
          2 * model.ffn_dim_of(stack);
    return numbers;
  };
  const bool translates = config.task == Task::kTranslation;
  const int64_t encoder = translates ? layers(model.encoder, 6) : 0;
  const int64_t decoder = layers(model.decoder, 12);
  const int64_t input = model.input_width() != model.dim ? model.input_width() : 0;
  const int64_t output =
      model.dim + model.output_width() + size.target_vocabulary / 8;  // in chunks
  const bool is_small = config.training.precision != Precision::kFloat32;
  // There the look at the source is in float32 (libtorch/nn/attention).
  const int64_t attention = is_small && size.on_cpu && translates && model.attention_dropout == 0
      ? 4 * model.dim * model.decoder.layers
      : 0;
  return (is_small ? 2 : 4) * (encoder + input + decoder + output) + 4 * attention;
}

}  // namespace

MemoryEstimate estimate_memory(const TrainConfig& config, const RunSize& size) {
  return {
      .parameters = parameter_bytes(config, size),
      .activations = config.batching.max_tokens * token_bytes(config, size)};
}

void report_dry_run(const TrainRequest& request, int64_t processes) {
  describe_files(request.config.data);
  check_writable(request.output);
  if (request.resume)
    report_resumed_run(request);
  else
    report_new_run(request, processes);
  log_info("dry run: nothing was written");
}

}  // namespace seqconv::internal
