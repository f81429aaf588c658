#include "train/updates.h"

#include <cmath>

#include "base/log.h"

namespace seqconv::internal {
namespace {

class HostUpdates : public Updates {
 public:
  explicit HostUpdates(const UpdateParts& parts) : parts_(parts) {}

  void add_batch(const Batch& batch, const RandomKey& key) override {
    accumulate_batch(
        parts_.model,
        batch,
        loss_options(parts_.config.training),
        key,
        parts_.position.current,
        parts_.config.training.precision);
  }

  void end(const StepOptions& options) override {
    Position& position = parts_.position;
    parts_.gradients.finish(position.current);
    const StepResult result =
        apply_update(parts_.parameters, parts_.optimizer, options, position.current);
    if (result.skipped) {
      count_skip(result.gradient_norm);
    } else {
      parts_.average.add(parts_.optimizer.scalars().steps);
      position.skips_in_a_row = 0;
      position.gradient_norm = result.gradient_norm;
      position.logged += position.current;
    }
    position.current = {};
  }

  void read() override {}

  void begin_record() override {
    parts_.position.logged = {};
    parts_.position.logged_skips = 0;
  }

 private:
  void count_skip(double gradient_norm) {
    Position& position = parts_.position;
    ++position.logged_skips;
    ++position.skips_in_a_row;
    parts_.before_warning();
    const bool too_large = position.current.broken == 0 && std::isfinite(gradient_norm);
    log_warning(
        "update ",
        position.update,
        " is skipped: ",
        position.current.broken > 0 ? std::string("its loss")
                                    : concat("its gradient (norm ", gradient_norm, ")"),
        too_large ? " is too large to be squared in float32" : " is not finite");
    if (position.skips_in_a_row >= kMostSkipsInARow)
      fail_diverged(parts_);
  }

  UpdateParts parts_;
};

}  // namespace

void fail_diverged(const UpdateParts& parts) {
  const ScheduleOptions& schedule = parts.config.schedule;
  fail(
      "training has diverged: ",
      kMostSkipsInARow,
      " updates in a row, up to update ",
      parts.position.update,
      ", had no finite loss and gradient, or too large a one. Lower schedule.learning_rate (",
      schedule.learning_rate,
      "), set optimizer.clip_norm (",
      parts.config.optimizer.clip_norm,
      "), or raise schedule.warmup_updates (",
      schedule.warmup_updates,
      "). The last saved checkpoint is untouched");
}

LossOptions loss_options(const TrainingOptions& training) {
  LossOptions options;
  options.smoothing = training.label_smoothing;
  options.form = training.smoothing_form;
  options.guided_alignment = training.guided_alignment;
  return options;
}

std::unique_ptr<Updates> make_host_updates(const UpdateParts& parts) {
  return std::make_unique<HostUpdates>(parts);
}

std::unique_ptr<Updates> make_updates(const UpdateParts& parts) {
  return parts.parameters.values().is_cpu() ? make_host_updates(parts) : make_device_updates(parts);
}

}  // namespace seqconv::internal
