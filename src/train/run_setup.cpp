#include "run_setup.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include "agreement.h"
#include "seqconv/base/checksum.h"
#include "seqconv/base/files.h"
#include "seqconv/base/log.h"
#include "seqconv/base/options.h"
#include "seqconv/base/signals.h"
#include "seqconv/checkpoint/model_description.h"
#include "seqconv/data/fairseq_data.h"
#include "seqconv/ops/device.h"
#include "settings.h"

namespace seqconv {
namespace {

void stop_if_asked() {
  if (const int signal = stop_signal())
    throw Interrupted(
        signal,
        "interrupted before the first batch; start the same command again");
}

/// Of binarised data both files decide the ids, of lists the stories too.
std::string content_of(const TextSource& source) {
  if (holds_ids(source)) {
    const FairseqFiles files = fairseq_files(source.file);
    return checksum_text(file_checksum(files.index)) + "+" +
        checksum_text(file_checksum(files.data));
  }
  const auto files = files_of(source);
  if (files.size() == 1)
    return checksum_text(file_checksum(files[0]));
  std::string sums;
  for (const auto& file : files)
    sums += checksum_text(file_checksum(file));
  return checksum_text(checksum(sums));
}

/// Changes whenever config.json says something else about the text.
std::string text_key(const RunFolder& folder) {
  return checksum_text(checksum(find_model(folder.root).config["text"].dump()));
}

/// The text of the settings is what the run has: options that only learning
/// reads are in no model folder.
void write_settings(const RunSetup& setup) {
  TrainConfig effective = setup.config;
  read_options(setup.settings.at("text"), "text", effective.text);
  write_file_atomically(
      setup.folder.settings(),
      to_toml(write_options(effective)));
}

/// What else than the files decides the ids.
void add_text_inputs(const RunSetup& setup, Json& inputs) {
  inputs["text"] = text_key(setup.folder);
  const ModelOptions& model = setup.config.model;
  const int64_t source = model.max_positions_of(model.encoder);
  const int64_t target = model.max_positions_of(model.decoder);
  const bool alike =
      setup.config.task == Task::kLanguageModel || source == target;
  inputs["max_length"] = alike ? Json(target) : Json::array({source, target});
  // Where nothing is cut, the stamps of older programs stay good.
  if (const DataOptions& data = setup.config.data;
      data.max_source_tokens + data.max_target_tokens > 0)
    inputs["cut"] =
        Json::array({data.max_source_tokens, data.max_target_tokens});
  if (setup.config.task == Task::kLanguageModel)
    inputs["samples"] =
        std::string(enum_name(setup.config.data.stream.samples));
}

void encode_data(RunSetup& setup, const Json& inputs) {
  setup.settings["inputs"] = inputs;
  setup.settings["threads"] = at::get_num_threads();
  setup.settings["processes"] = setup.communicator->size();
  setup.data = setup.task->prepare(setup.folder.data(), inputs);
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

void begin(const TrainRequest& request, Json inputs, RunSetup& setup) {
  if (!std::filesystem::is_empty(setup.folder.checkpoints()))
    log_warning(
        "'",
        setup.folder.checkpoints().string(),
        "' holds checkpoints of another run, which stay there");
  if (request.init_from.empty())
    log_info("preparing the text");
  setup.task->create(request);
  stop_if_asked();
  setup.settings = {
      {"config", write_options(setup.config)},
      {"text", write_options(setup.task->text_options())}};
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
  try {
    Json config = resumed_settings(saved, write_options(setup.config));
    const Json text = saved.value("text", config["text"]);
    setup.settings = {{"config", std::move(config)}, {"text", text}};
    const int64_t threads = at::get_num_threads();
    warn_of_another_number("threads", saved.value("threads", threads), threads);
    warn_of_another_number(
        "processes",
        saved.value("processes", int64_t{1}),
        setup.communicator->size());
    return saved.value("inputs", Json::object());
  } catch (const Json::exception& error) {
    fail(
        setup.folder.state().string(),
        ": the settings of the run are malformed: ",
        error.what());
  }
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
}

/// In another process than the first: opens what that one has prepared.
void join(const TrainRequest& request, Json inputs, RunSetup& setup) {
  if (request.resume)
    setup.resumed = read_state(setup.folder.state()).position;
  setup.task->open(setup.folder.root);
  add_text_inputs(setup, inputs);
  setup.data = setup.task->prepare(setup.folder.data(), inputs);
}

/// Models that another process has drawn, or taken from --init-from.
void share_parameters(Communicator& processes, const SequenceModel& model) {
  at::NoGradGuard no_grad;
  for (const at::Tensor& parameter : model.parameters()) {
    const at::Tensor here = ops::to_host(parameter);
    const auto count = static_cast<size_t>(here.numel());
    processes.broadcast(
        std::as_writable_bytes(
            std::span(here.mutable_data_ptr<float>(), count)),
        /*root=*/0);
    if (!parameter.is_cpu())
      parameter.copy_(ops::to_device(here, parameter.device()));
  }
}

}  // namespace

void check_output(const TrainRequest& request) {
  const RunFolder folder{request.output};
  if (request.output.empty())
    fail_usage("training needs an output folder (--output)");
  if (request.resume && !request.init_from.empty())
    fail_usage(
        "--resume goes on from the output folder's own state: --init-from "
        "cannot be given with it");
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
        "' already holds a model and its run: go on with --resume, or choose "
        "another folder");
  if (!state && folder.holds_model())
    fail_usage(
        "the output folder '",
        request.output.string(),
        "' already holds a model, but no '",
        folder.state().string(),
        "' to go on from: choose another folder (--init-from starts there with "
        "this model), or move the files of this one away and begin without "
        "--resume");
  if (request.resume && !state)
    fail_usage(
        "nothing to resume: there is no '",
        folder.state().string(),
        "'; leave out --resume to begin");
}

Json describe_files(const DataOptions& data) {
  Json described = Json::object();
  const auto add = [&](const char* key,
                       const std::vector<std::string>& files,
                       bool both = false) {
    Json& sums = described[key] = Json::array();
    for (const std::string& file : files) {
      try {
        sums.push_back(content_of(
            both ? data.source_of(file, PairSide::kSource) : TextSource(file)));
      } catch (const Error& error) {
        fail("data.", key, ": ", error.what());
      }
    }
  };
  add("train_source", data.train_source);
  add("train_target", data.train_target);
  add("valid_source", data.valid_source);
  add("valid_target", data.valid_target);
  add("train", data.train, /*both=*/true);
  add("valid", data.valid, /*both=*/true);
  return described;
}

RunSetup set_up_run(
    const TrainRequest& request,
    std::shared_ptr<Communicator> communicator) {
  RunSetup setup;
  setup.communicator = std::move(communicator);
  setup.config = request.config;
  setup.folder.root = request.output;
  setup.task = make_task(request.config, request.device);
  Communicator& processes = *setup.communicator;
  const Json inputs = describe_files(request.config.data);
  check_same_run(processes, request, inputs);
  if (processes.is_first())
    check_validation_text(request.config, request.resume);
  if (processes.is_first())
    take_folder(request, setup);
  check_shared_folder(processes, setup.folder.training());
  if (processes.is_first() && request.resume)
    go_on(inputs, setup);
  else if (processes.is_first())
    begin(request, inputs, setup);
  processes.barrier();
  if (!processes.is_first())
    join(request, inputs, setup);
  if (!request.resume)
    share_parameters(processes, *setup.task->model());
  return setup;
}

}  // namespace seqconv
