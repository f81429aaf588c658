#include "train/run_setup.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <chrono>

#include "base/checksum.h"
#include "base/files.h"
#include "base/log.h"
#include "base/options.h"
#include "base/safetensors.h"
#include "base/signals.h"
#include "libtorch/ops/device.h"
#include "model/decoding_defaults.h"
#include "model/model_description.h"
#include "model/model_writing.h"
#include "train/agreement.h"
#include "train/data_options.h"
#include "train/given_text.h"
#include "train/held_out.h"
#include "train/settings.h"

namespace seqconv::internal {
namespace {

void stop_if_asked() {
  if (const int signal = stop_signal())
    throw Interrupted(signal, "interrupted before the first batch; start the same command again");
}

/// A process that is not the first waits so long for its files to be seen.
constexpr auto kMostDelayOfFiles = std::chrono::seconds(3);

/// Changes whenever config.json says something else about the text.
std::string text_key(const RunFolder& folder) {
  return checksum_text(checksum(find_model(folder.root).config["text"].dump()));
}

/// The text of the settings is what the run has: options that only learning
/// reads are in no model folder.
void write_settings(const RunSetup& setup) {
  TrainConfig effective = setup.config;
  read_options(setup.settings.at("text"), "text", effective.text);
  write_file_atomically(setup.folder.settings(), to_toml(write_options(effective)));
}

/// What else than the files decides the ids.
void add_text_inputs(const RunSetup& setup, Json& inputs) {
  inputs["text"] = text_key(setup.folder);
  const ModelOptions& model = setup.config.model;
  const int64_t source = model.max_positions_of(model.encoder);
  const int64_t target = model.max_positions_of(model.decoder);
  const bool alike = setup.config.task == Task::kLanguageModel || source == target;
  inputs["max_length"] = alike ? Json(target) : Json::array({source, target});
  // Where nothing is cut, the stamps of older programs stay good.
  if (const DataOptions& data = setup.config.data;
      data.max_source_tokens + data.max_target_tokens > 0)
    inputs["cut"] = Json::array({data.max_source_tokens, data.max_target_tokens});
  if (setup.config.task == Task::kLanguageModel)
    inputs["samples"] = std::string(enum_name(setup.config.data.stream.samples));
}

void encode_data(RunSetup& setup, const Json& inputs) {
  setup.settings["inputs"] = inputs;
  setup.settings["threads"] = at::get_num_threads();
  setup.settings["processes"] = setup.communicator->size();
  setup.data = prepare_data(setup.folder.data(), inputs, setup.task->recipes());
}

/// Makes the task of the configuration, whose validation text is that which was held out where
/// none is given.
void make_task_of(RunSetup& setup, at::Device device, bool is_there) {
  if (holds_out(setup.config)) {
    const auto folder = setup.folder.training();
    setup.config.data.held_out =
        is_there ? open_held_out(setup.config, folder) : hold_out(setup.config, folder);
    if (!is_there)
      log_info("  they lie in '", folder.string(), "/validation.*'");
    if (setup.communicator->is_first())
      check_validation_text(setup.config, is_there);
  }
  setup.task = make_task(setup.config, device);
}

/// Options that a resumed run is told anew are the model's too, as validation has it.
void choose_decoding(bool fits, RunSetup& setup) {
  const auto decoding = setup.task->decoding_for(*setup.data.train.samples, fits);
  if (!decoding)
    return;
  setup.config.decoding = *decoding;
  if (!setup.communicator->is_first())
    return;
  write_decoding(setup.folder.root, *decoding);
  if (!fits)
    return;
  write_settings(setup);
  log_info(
      "translations have at most ",
      decoding->max_length_a,
      " x source length + ",
      decoding->max_length_b,
      " tokens, by the training text (decoding.max_length_a, max_length_b)");
}

/// Takes the folder, in which another process may have trained until now.
void take_folder(const TrainRequest& request, RunSetup& setup) {
  const RunFolder& folder = setup.folder;
  create_folder(folder.checkpoints());
  setup.lock = std::make_shared<const FolderLock>(folder.root, folder.lock());
  check_output(request);
  if (setup.lock->held())
    remove_leftovers(folder, /*own=*/true);
}

/// Neither their checkpoints are this run's, nor are the records that were
/// written with them.
void leave_other_runs(const RunFolder& folder) {
  if (std::filesystem::is_empty(folder.checkpoints()))
    return;
  log_warning(
      "'", folder.checkpoints().string(), "' holds checkpoints of another run, which stay there");
  if (!std::filesystem::exists(folder.metrics()))
    return;
  for (const std::filesystem::path& file : {folder.metrics().path(), folder.settings()})
    if (const auto other = set_aside(file); !other.empty())
      log_warning(
          "'", file.string(), "' of that run is called '", other.filename().string(), "' now");
}

/// After a state was put back to an earlier update, for example.
void warn_of_other_checkpoints(const RunSetup& setup) {
  const auto others = other_checkpoints(setup.folder, setup.resumed->checkpoints);
  if (others.empty())
    return;
  log_warning(
      "'",
      setup.folder.checkpoints().string(),
      "' holds ",
      others.size() == 1 ? "a checkpoint" : "checkpoints",
      " that the state of the run does not count as its own, from update ",
      others.front(),
      others.size() == 1 ? "" : concat(" to ", others.back()),
      ": training.keep_last leaves ",
      others.size() == 1 ? "it" : "them",
      " alone");
}

void begin(const TrainRequest& request, Json inputs, RunSetup& setup) {
  leave_other_runs(setup.folder);
  if (request.init_from.empty())
    log_info("preparing the text");
  setup.task->create(request);
  stop_if_asked();
  setup.settings = {
      {"config", write_options(setup.config)},
      {"text", with_learning_keys(request, write_options(setup.task->text_options()))}};
  setup.task->write_config(setup.folder.root);
  write_settings(setup);
  add_text_inputs(setup, inputs);
  encode_data(setup, inputs);
}

/// Of threads or processes.
void warn_of_another_number(const char* what, int64_t before, int64_t present) {
  if (before != present)
    log_warning(
        "the run began with ",
        before,
        " ",
        what,
        " and goes on with ",
        present,
        ": the last bits may differ from an uninterrupted run");
}

/// Takes the settings of a state over, and gives its description of the data.
Json take_settings(const Json& saved, RunSetup& setup) {
  Json config = resumed_settings(saved, write_options(setup.config));
  const Json text = saved.value("text", config["text"]);
  setup.settings = {{"config", std::move(config)}, {"text", text}};
  const int64_t threads = at::get_num_threads();
  warn_of_another_number("threads", saved.value("threads", threads), threads);
  warn_of_another_number(
      "processes", saved.value("processes", int64_t{1}), setup.communicator->size());
  return saved.value("inputs", Json::object());
}

void go_on(Json inputs, RunSetup& setup) {
  SavedState saved = read_state(setup.folder.state());
  const Json inputs_before = take_settings(saved.settings, setup);
  add_text_inputs(setup, inputs);
  check_same_inputs(inputs_before, inputs);
  setup.task->open(setup.folder.root);
  write_settings(setup);
  encode_data(setup, inputs);
  setup.resumed = saved.position;
  warn_of_other_checkpoints(setup);
}

/// Tells one state from another.
Json state_mark(const RunFolder& folder) {
  const SafetensorsReader state(folder.state());
  const auto found = state.metadata().find("checksum");
  return found == state.metadata().end() ? Json() : Json(found->second);
}

/// What the first process has made, or found and checked: enough for the others
/// to see whether they see the same, without reading all of it.
std::string describe_setup(const RunSetup& setup) {
  Json made = {{"stamp", read_file(setup.folder.stamp())}};
  if (setup.resumed) {
    made["state"] = state_mark(setup.folder);
    made["position"] = write_options(*setup.resumed);
  }
  return made.dump();
}

/// In another process than the first: opens what that one has made. It writes
/// nothing.
void join(const Json& made, at::Device device, RunSetup& setup) {
  const RunFolder& folder = setup.folder;
  const std::string stamp = made.at("stamp");
  SEQCONV_CHECK(
      sees(folder.stamp(), stamp, kMostDelayOfFiles),
      "'",
      folder.stamp().string(),
      "' is another there");
  if (made.contains("state")) {
    SEQCONV_CHECK(
        state_mark(folder) == made.at("state"), "'", folder.state().string(), "' is another there");
    read_options(made.at("position"), "position", setup.resumed.emplace());
  }
  make_task_of(setup, device, /*is_there=*/true);
  setup.task->open(folder.root);
  setup.data = open_prepared_data(folder.data(), stamp, setup.task->recipes());
}

/// The others join the first, or all fail with the words of the lowest rank
/// that cannot.
void join_the_first(at::Device device, RunSetup& setup) {
  Communicator& processes = *setup.communicator;
  if (processes.size() == 1)
    return;
  const std::string made =
      broadcast_text(processes, processes.is_first() ? describe_setup(setup) : "", 0);
  std::string fault;
  try {
    if (!processes.is_first())
      join(Json::parse(made), device, setup);
  } catch (const Error& error) {
    fault =
        concat("rank ", processes.rank(), " cannot use what rank 0 has prepared: ", error.what());
  }
  fault = lowest_fault(processes, fault);
  if (!fault.empty())
    fail(fault);
}

/// Models that another process has drawn, or taken from --init-from.
void share_parameters(Communicator& processes, const SequenceModel& model) {
  at::NoGradGuard no_grad;
  for (const at::Tensor& parameter : model.parameters()) {
    const at::Tensor here = ops::to_host(parameter);
    const auto count = static_cast<size_t>(here.numel());
    processes.broadcast(
        std::as_writable_bytes(std::span(here.mutable_data_ptr<float>(), count)),
        /*root=*/0);
    if (!parameter.is_cpu())
      parameter.copy_(ops::to_device(here, parameter.device()));
  }
}

/// The files that a run writes into its folder when it begins or saves.
std::vector<std::filesystem::path> written_files(const RunFolder& folder) {
  std::vector<std::filesystem::path> files = {
      folder.state(), folder.metrics(), folder.settings(), folder.kept_best()};
  for (const std::string& name : model_file_names())
    files.push_back(folder.root / name);
  return files;
}

/// Error for files of the configuration that the run would write over.
void check_inputs_stay(const TrainRequest& request) {
  const auto check = [&](const char* key, const std::string& file) {
    std::error_code none;
    if (file.empty())
      return;
    std::vector<std::filesystem::path> written = written_files(RunFolder{request.output});
    written.push_back(request.output);
    for (const std::filesystem::path& place : written)
      if (std::filesystem::equivalent(place, file, none))
        fail_usage(
            "--output would write over a file that ",
            key,
            " reads: '",
            place.string(),
            place == file ? std::string("'") : concat("' is '", file, "'"),
            "; choose another folder");
  };
  const DataOptions& data = request.config.data;
  for (const auto& [key, files] :
       {std::pair{"data.train_source", &data.train_source},
        {"data.train_target", &data.train_target},
        {"data.valid_source", &data.valid_source},
        {"data.valid_target", &data.valid_target},
        {"data.train", &data.train},
        {"data.valid", &data.valid}})
    for (const std::string& file : *files)
      check(key, file);
  const TextOptions& text = request.config.text;
  check("text.bpe_codes", text.bpe_codes);
  check("text.sentencepiece_model", text.sentencepiece_model);
  check("text.source_dictionary", text.source_dictionary);
  check("text.target_dictionary", text.target_dictionary);
  check("text.dictionary", text.dictionary);
}

/// Error for files that the run would write over and no run has made. Those of
/// the training are other runs' where checkpoints are (leave_other_runs).
void check_own_run(const RunFolder& folder) {
  check_own_folder(folder.root);
  std::error_code none;
  if (std::filesystem::exists(folder.lock(), none) ||
      std::filesystem::exists(folder.checkpoints(), none))
    return;
  for (const std::filesystem::path& file :
       {folder.metrics().path(), folder.settings(), folder.stamp()})
    SEQCONV_CHECK(
        !std::filesystem::exists(file, none),
        "'",
        file.string(),
        "' would be lost, and no run of this folder has written it: move it away, or choose "
        "another --output");
}

}  // namespace

void check_output(const TrainRequest& request) {
  const RunFolder folder{{request.output, request.links}};
  if (request.output.empty())
    fail_usage("training needs an output folder (--output)");
  if (request.resume && !request.init_from.empty())
    fail_usage(
        "--resume goes on from the output folder's own state: --init-from cannot be given with it");
  // There, what looks for a checkpoint's config.json would find the new one.
  if (is_inside_training(request.output))
    fail_usage(
        "the output folder '",
        request.output.string(),
        "' lies among the files of another training: choose another folder");
  const bool state = folder.holds_state();
  if (!request.resume && state)
    fail_usage(
        "the output folder '",
        request.output.string(),
        "' already holds a model and its run: go on with --resume, or choose another folder");
  if (!state && folder.holds_model())
    fail_usage(
        "the output folder '",
        request.output.string(),
        "' already holds a model, but no '",
        folder.state().string(),
        "' to go on from: choose another folder (--init-from starts there with this model), or "
        "move the files of this one away, with those of its training, and begin without --resume");
  if (request.resume && !state)
    fail_usage(
        "nothing to resume: there is no '",
        folder.state().string(),
        "'; leave out --resume to begin");
  check_written_files(folder.root);
  if (request.resume)
    return;
  check_inputs_stay(request);
  check_own_run(folder);
}

RunSetup set_up_run(const TrainRequest& request, std::shared_ptr<Communicator> communicator) {
  RunSetup setup;
  setup.clock = [begun = request.begun] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  };
  setup.communicator = std::move(communicator);
  setup.config = request.config;
  setup.folder.root = {request.output, request.links};
  Communicator& processes = *setup.communicator;
  const DataOptions& data = request.config.data;
  if (processes.size() > 1)
    check_same_run(processes, request, describe_files(data, sampled_checksum));
  Json inputs;  // of the corpus that the first alone reads
  if (processes.is_first()) {
    inputs = describe_files(data);
    if (!holds_out(request.config))
      check_validation_text(request.config, request.resume);
    take_folder(request, setup);
    make_task_of(setup, request.device, /*is_there=*/request.resume);
  }
  check_shared_folder(processes, setup.folder.training());
  if (processes.is_first() && request.resume)
    go_on(inputs, setup);
  else if (processes.is_first())
    begin(request, inputs, setup);
  join_the_first(request.device, setup);
  choose_decoding(request.fits_lengths, setup);
  setup.data.train.samples = setup.task->for_training(setup.data.train.samples);
  if (!request.resume)
    share_parameters(processes, *setup.task->model());
  return setup;
}

}  // namespace seqconv::internal
