#include "seqconv/train/trainer.h"

#include <ATen/Parallel.h>

#include "dry_run.h"
#include "run_setup.h"
#include "seqconv/base/log.h"
#include "train_loop.h"

namespace seqconv {
namespace {

void report_setup(const RunSetup& setup) {
  log_info("training data: ", setup.data.train_report.summary());
  if (setup.data.valid)
    log_info("validation data: ", setup.data.valid_report.summary());
  int64_t count = 0;
  for (const auto& parameter : setup.loaded.model->parameters())
    count += parameter.numel();
  log_info(
      "model: ",
      count,
      " parameters, vocabularies of ",
      setup.loaded.model->source_vocabulary(),
      " and ",
      setup.loaded.model->target_vocabulary(),
      " symbols");
  if (setup.resumed)
    log_info(
        "going on in epoch ",
        setup.resumed->epoch,
        " after update ",
        setup.resumed->update);
}

}  // namespace

void train_translation(const TrainRequest& request) {
  request.config.validate();
  check_output(request);
  if (request.config.training.threads > 0)
    at::set_num_threads(static_cast<int>(request.config.training.threads));
  if (request.dry_run) {
    report_dry_run(request);
    return;
  }
  RunSetup setup = set_up_run(request);
  report_setup(setup);
  TrainLoop(std::move(setup)).run();
}

}  // namespace seqconv
