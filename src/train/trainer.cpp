#include "train/trainer.h"

#include <ATen/Parallel.h>

#include "base/log.h"
#include "libtorch/backend/device.h"
#include "train/binarised_data.h"
#include "train/device_checks.h"
#include "train/dry_run.h"
#include "train/processes/processes.h"
#include "train/run_setup.h"
#include "train/train_loop.h"

namespace seqconv::internal {
namespace {

/// UsageError when some processes would never have a batch.
void check_shares(const TrainingOptions& training, int64_t processes) {
  if (training.accumulate < processes)
    fail_usage(
        "training.accumulate is ",
        training.accumulate,
        ": an update has fewer batches than the ",
        processes,
        " processes that share them; set it to ",
        processes,
        " (or a multiple), or start fewer processes");
}

at::Device open_training_device(const TrainConfig& config, const Communicator& processes) {
  return open_device(
      parse_device_name("training.device", config.training.device), processes.local_rank());
}

void check_precision(const TrainingOptions& training, at::Device device) {
  const bool asks = device.is_cuda() && training.precision != Precision::kFloat32;
  const std::string fault = precision_fault(
      training.precision, device, asks ? compute_capability(device) : ComputeCapability());
  if (!fault.empty())
    fail_usage(fault);
}

/// Says why the run itself would be refused: a dry run writes nothing into its folder.
void note_output(const TrainRequest& request) {
  try {
    check_output(request);
  } catch (const Error& error) {
    log_warning("without --dry-run this would be refused: ", error.what());
  }
}

void report_setup(const RunSetup& setup) {
  if (const at::Device device = setup.task->model()->device(); !device.is_cpu())
    log_info("training on ", device.str());
  if (const int64_t size = setup.communicator->size(); size > 1)
    log_info(size, " processes, ", at::get_num_threads(), " threads in each");
  report_data(setup.data);
  if (setup.communicator->is_first() && setup.config.task == Task::kTranslation && !setup.resumed)
    warn_of_shared_samples(setup.data);
  log_info(
      "model: ",
      setup.task->model()->parameter_count(),
      " parameters, ",
      vocabulary_text(*setup.task));
  if (setup.resumed)
    log_info("going on in epoch ", setup.resumed->epoch, " after update ", setup.resumed->update);
}

}  // namespace

void train_model(const TrainRequest& request, std::shared_ptr<Communicator> communicator) {
  request.config.validate();
  check_shares(request.config.training, communicator->size());
  if (request.dry_run && !request.resume && !request.output.empty())
    note_output(request);
  else
    check_output(request);
  if (!request.resume && request.init_from.empty())
    check_named_text(request.config);
  if (request.config.training.threads > 0)
    at::set_num_threads(static_cast<int>(request.config.training.threads));
  else if (communicator->size() > 1)
    at::set_num_threads(static_cast<int>(share_of_cores(*communicator)));
  TrainRequest on_device = request;
  on_device.device = open_training_device(request.config, *communicator);
  check_precision(request.config.training, on_device.device);
  communicator = open_on_device(std::move(communicator), on_device.device);
  if (request.dry_run) {
    if (communicator->is_first())
      report_dry_run(on_device, communicator->size());
    return;
  }
  RunSetup setup = set_up_run(on_device, std::move(communicator));
  report_setup(setup);
  TrainLoop(std::move(setup)).run();
}

}  // namespace seqconv::internal
