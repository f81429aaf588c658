#include "train/run_plan.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <span>
#include <sstream>
#include <utility>

#include "base/log.h"
#include "train/processes/batch_share.h"
#include "train/progress.h"
#include "train/schedule.h"

namespace seqconv::internal {
namespace {

/// The first updates of a process allocate and choose: they are slower than the others.
constexpr int64_t kSlowUpdates = 3;
/// The pace is known after so many seconds, or this share of a short run.
constexpr double kPaceSeconds = 5;
constexpr double kPaceShare = 0.02;
/// The pace is that of the last updates, about so many seconds, or this share of a longer run:
/// what else a machine does comes and goes. At least so many updates.
constexpr double kRecentSeconds = 10;
constexpr double kRecentShare = 0.1;
constexpr int64_t kRecentUpdates = 50;
/// A plan is made shorter when this share of it would be cut off, and longer, up to its last
/// tenth, when it could have so much more.
constexpr double kCutShare = 0.1;
constexpr double kSpareShare = 0.1;

/// Sentences of text that a model sees less often than this leave it much to learn.
constexpr double kFewEpochs = 3;

/// Validations cost a third of the training steps over their batches, and a translation about
/// three of these.
double validation_factor(const TrainingOptions& training) {
  return training.metrics().empty() ? 1.0 / 3 : 3.0;
}

double guess_validation(const TrainingOptions& training, int64_t valid_batches, double pace) {
  const double batch = pace / static_cast<double>(training.accumulate);
  return batch * static_cast<double>(valid_batches) * validation_factor(training);
}

/// Seconds of an update with its share of the validations.
double seconds_of_update(
    const TrainingOptions& training, int64_t batches, double pace, double validation) {
  const int64_t every = training.validate_every > 0
      ? training.validate_every
      : updates_per_epoch(batches, training.accumulate);
  return pace + validation / static_cast<double>(every);
}

std::string limits_text(const TrainingOptions& training, int64_t batches) {
  return concat(
      training.max_minutes,
      " minutes, ",
      training.max_updates,
      " updates, ",
      training.max_epochs,
      " epochs of ",
      updates_per_epoch(batches, training.accumulate));
}

}  // namespace

int64_t counted_end(const TrainingOptions& training, int64_t batches) {
  const int64_t of_epochs = training.max_epochs * updates_per_epoch(batches, training.accumulate);
  if (training.max_updates > 0 && of_epochs > 0)
    return std::min(training.max_updates, of_epochs);
  return std::max(training.max_updates, of_epochs);
}

RunForecast forecast_run(
    const TrainConfig& config, int64_t batches, int64_t valid_batches, double pace) {
  const TrainingOptions& training = config.training;
  const double validation = guess_validation(training, valid_batches, pace);
  const double each = seconds_of_update(training, batches, pace, validation);
  RunForecast forecast;
  forecast.updates = counted_end(training, batches);
  if (training.max_minutes > 0) {
    const double fit = std::clamp((60 * training.max_minutes - validation) / each, 1.0, 1e15);
    const auto most = forecast.updates > 0 ? forecast.updates : static_cast<int64_t>(1e15);
    forecast.updates = std::min(static_cast<int64_t>(fit), most);
  }
  if (forecast.updates == 0)
    return forecast;
  const auto updates = static_cast<double>(forecast.updates);
  forecast.epochs = updates / static_cast<double>(updates_per_epoch(batches, training.accumulate));
  forecast.seconds = updates * each + validation;
  forecast.warmup = std::min(warmup_of(config.schedule, forecast.updates), forecast.updates);
  return forecast;
}

RunPlan::RunPlan(
    const TrainConfig& config,
    Position& position,
    int64_t batches,
    int64_t valid_batches,
    std::function<double()> clock)
    : config_(config),
      position_(position),
      batches_(batches),
      valid_batches_(valid_batches),
      clock_(std::move(clock)),
      elapsed_before_(position.elapsed),
      last_update_(position.update) {
  const std::string limits = limits_text(config.training, batches);
  if (position.planned_for == limits)
    return;
  position.planned_for = limits;
  position.planned_updates =
      config.training.max_minutes > 0 ? 0 : counted_end(config.training, batches);
}

double RunPlan::seconds_left() const {
  const double minutes = config_.training.max_minutes;
  return minutes > 0 ? std::max(60 * minutes - elapsed(), 0.0) : -1;
}

void RunPlan::measure_pace() {
  const int64_t updates = position_.update - last_update_;
  const double now = clock_();
  const double seconds = now - std::exchange(last_look_, now) - std::exchange(validating_, 0.0);
  last_update_ = position_.update;
  if (pace_ == 0 && position_.update > 0)  // a resumed run goes on as it was
    pace_ = position_.seconds / static_cast<double>(position_.update);
  if (updates == 0 || (measured_updates_ < 0 && position_.update < kSlowUpdates))
    return;
  if (measured_updates_ < 0) {
    measured_updates_ = 0;
    return;
  }
  measured_updates_ += updates;
  measured_seconds_ += seconds;
  const double all = static_cast<double>(updates) / static_cast<double>(measured_updates_);
  const double window = std::max(kRecentSeconds, kRecentShare * 60 * config_.training.max_minutes);
  const double recent = std::min(
      seconds / window, static_cast<double>(updates) / static_cast<double>(kRecentUpdates));
  pace_ += std::max(all, recent) * (seconds / static_cast<double>(updates) - pace_);
}

bool RunPlan::knows_pace() const {
  const double wanted = std::min(kPaceSeconds, kPaceShare * 60 * config_.training.max_minutes);
  return measured_updates_ >= kSlowUpdates && measured_seconds_ >= wanted;
}

double RunPlan::validation_seconds() const {
  if (validation_ >= 0)
    return validation_;
  const double pace = pace_ > 0 || position_.update == 0
      ? pace_
      : position_.seconds / static_cast<double>(position_.update);
  return guess_validation(config_.training, valid_batches_, pace);
}

int64_t RunPlan::updates_that_fit() const {
  const double last = validation_seconds();
  const double each = seconds_of_update(config_.training, batches_, pace_, last);
  if (each <= 0)
    return 0;
  return static_cast<int64_t>(std::clamp((seconds_left() - last) / each, 0.0, 1e15));
}

int64_t RunPlan::decide() const {
  const int64_t now = position_.update;
  if (now > 0 && seconds_left() <= validation_seconds())
    return now;
  const int64_t fit = now + updates_that_fit();
  const bool is_resumed = measured_updates_ < 0 && elapsed_before_ > 0 && pace_ > 0;
  if (end() == 0)
    return knows_pace() || is_resumed ? fit : 0;
  if (!config_.schedule.needs_end())  // its end is for the eye
    return now < end() ? end() : fit;
  const auto share = [&](int64_t updates) {
    return static_cast<double>(updates) / static_cast<double>(end());
  };
  const bool is_late = share(end() - fit) > kCutShare;
  const bool has_spare = 10 * now < 9 * end() && share(fit - end()) > kSpareShare;
  return knows_pace() && (is_late || has_spare) ? fit : end();
}

void RunPlan::plan(int64_t end) {
  const bool is_first = std::exchange(position_.planned_updates, end) == 0;
  if (end == position_.update || (!is_first && !config_.schedule.needs_end()))
    return;
  const int64_t warmup = warmup_of(config_.schedule, end);
  log_info(
      "the run is planned to have ",
      end,
      " updates, ",
      warmup,
      " of them warm-up; ",
      duration_text(seconds_left()),
      " left");
  if (is_first)
    judge(end);
}

void RunPlan::judge(int64_t end) const {
  const TrainingOptions& training = config_.training;
  if (const int64_t warmup = warmup_of(config_.schedule, end); 3 * warmup > end)
    log_warning(
        "warm-up takes ",
        warmup,
        " of the run's ",
        end,
        " updates, more than a third: lower schedule.warmup_updates, or set "
        "schedule.warmup_share = 0.1");
  const double epochs = static_cast<double>(end) /
      static_cast<double>(updates_per_epoch(batches_, training.accumulate));
  const bool as_told =
      training.max_epochs > 0 && epochs >= static_cast<double>(training.max_epochs);
  if (epochs >= kFewEpochs || as_told)
    return;
  std::ostringstream times;
  times << std::fixed << std::setprecision(epochs < 0.1 ? 3 : 1) << epochs;
  log_info(
      "the run sees the training text only ",
      times.str(),
      " times: a larger training.",
      training.max_minutes > 0 ? "max_minutes" : "max_updates",
      ", or a smaller model (model.dim), lets it learn more of it");
}

void RunPlan::look(Communicator& processes) {
  position_.elapsed = elapsed();
  if (position_.update == 0 && position_.micro_batch == 0 && end() > 0)
    judge(end());
  if (config_.training.max_minutes == 0)
    return;
  measure_pace();
  if (processes.size() > 1 && position_.update % processes.updates_between_questions() != 0)
    return;
  int64_t end = decide();
  const int64_t counted = counted_end(config_.training, batches_);
  if (counted > 0 && end > counted)
    end = std::max(counted, position_.update);
  processes.broadcast(std::as_writable_bytes(std::span(&end, 1)), /*root=*/0);
  if (end != position_.planned_updates)
    plan(end);
}

std::string RunPlan::reason_to_stop() const {
  const TrainingOptions& training = config_.training;
  const bool epoch_over = position_.batch == batches_;
  const int64_t epochs = position_.epoch - (epoch_over ? 0 : 1);
  if (training.max_updates > 0 && position_.update >= training.max_updates)
    return "max_updates";
  if (training.max_epochs > 0 && epochs >= training.max_epochs)
    return "max_epochs";
  if (training.max_minutes > 0 && end() > 0 && position_.update >= end())
    return "max_minutes";
  if (training.patience > 0 && position_.validations_without_gain >= training.patience)
    return "patience";
  return "";
}

}  // namespace seqconv::internal
