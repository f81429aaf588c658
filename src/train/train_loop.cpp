#include "train/train_loop.h"

#include <cmath>

#include "base/log.h"
#include "base/options.h"
#include "base/signals.h"
#include "train/agreement.h"
#include "train/checkpoint.h"
#include "train/schedule.h"

namespace seqconv::internal {
namespace {

uint64_t seed_of(const TrainConfig& config) {
  return static_cast<uint64_t>(config.training.seed);
}

std::optional<Batcher> valid_batches_of(const RunSetup& setup) {
  if (!setup.data.valid)
    return std::nullopt;
  return std::optional<Batcher>(
      std::in_place, setup.data.valid->samples, setup.config.batching, seed_of(setup.config));
}

}  // namespace

TrainLoop::TrainLoop(RunSetup setup)
    : setup_(std::move(setup)),
      parameters_(*setup_.task->model()),
      shares_(setup_.communicator, parameters_, training().shard_optimizer),
      optimizer_(setup_.config.optimizer, shares_.own(parameters_.values())),
      average_(training().average(), parameters_.values(), shares_),
      gradients_(*setup_.task->model(), parameters_, setup_.communicator),
      batches_(setup_.data.train.samples, setup_.config.batching, seed_of(setup_.config)),
      valid_batches_(valid_batches_of(setup_)),
      position_(setup_.resumed.value_or(Position{})),
      plan_(
          setup_.config,
          position_,
          batches_.size(),
          valid_batches_ ? valid_batches_->size() : 0,
          setup_.clock),
      has_state_(setup_.resumed.has_value()),
      writer_(setup_) {
  if (setup_.resumed)
    load_state_tensors(setup_.folder.state(), position_, tensors());
  if (!processes().is_first()) {  // which has what an update has gathered
    parameters_.gradients().zero_();
    position_.current = {};
  }
  SEQCONV_CHECK(
      position_.batch <= batches_.size(),
      setup_.folder.state().string(),
      ": the run stands at batch ",
      position_.batch,
      " of an epoch, but the data give ",
      batches_.size());
  SEQCONV_CHECK(
      batches_.size() >= processes().size(),
      "an epoch has ",
      batches_.size(),
      " batches, fewer than the ",
      processes().size(),
      " processes that share them; start fewer, or lower batching.max_tokens");
  order_ = batches_.order(position_.epoch);
  updates_ = make_updates(
      {.config = setup_.config,
       .model = *setup_.task->model(),
       .parameters = parameters_,
       .optimizer = optimizer_,
       .average = average_,
       .gradients = gradients_,
       .position = position_,
       .before_warning = [this] { progress_.clear(); },
       .scaling = {.on = training().precision == Precision::kFloat16}});
}

void TrainLoop::run() {
  if (setup_.resumed && position_.saved_update == position_.update &&
      !plan_.reason_to_stop().empty()) {
    log_info("nothing to do: the run has already ended at training.", plan_.reason_to_stop());
    if (!setup_.task->is_complete())
      complete_model();
    return;
  }
  writer_.open_records(position_);
  writer_.write_record(start_record(setup_, batches_.size()));
  settle();
  warn_of_preparation();
  plan_.look(processes());
  std::string reason = plan_.reason_to_stop();
  while (reason.empty()) {
    if (own_.empty())
      begin_update();
    take_batch();
    settle();
    stop_if_asked();
    if (position_.micro_batch == 0)
      plan_.look(processes());
    reason = plan_.reason_to_stop();
  }
  finish(reason);
}

void TrainLoop::warn_of_preparation() const {
  const double all = 60 * training().max_minutes;
  if (all > 0 && !setup_.resumed && 2 * plan_.elapsed() > all)
    log_warning(
        "preparing the text took ",
        duration_text(plan_.elapsed()),
        " of the run's ",
        duration_text(all),
        ": raise training.max_minutes (--minutes)");
}

ProgressStatus TrainLoop::status() const {
  ProgressStatus status = progress_status(position_, training(), batches_.size());
  status.seconds_left = plan_.seconds_left();
  return status;
}

void TrainLoop::begin_update() {
  if (position_.batch == batches_.size()) {
    order_ = batches_.order(++position_.epoch);
    position_.batch = 0;
  }
  own_ = batches_of(
      order_,
      training().accumulate,
      (position_.batch - position_.micro_batch) / training().accumulate,
      processes().rank(),
      processes().size());
  // What a resumed run took before it was stopped.
  std::erase_if(
      own_, [&](const UpdateBatch& batch) { return batch.place < position_.micro_batch; });
}

/// The next of this process; where none is left, the update ends.
void TrainLoop::take_batch() {
  const double begun = setup_.clock();
  state_is_last_ = false;
  const int64_t begin = position_.batch - position_.micro_batch;
  const int64_t update = begin / training().accumulate;  // of the epoch
  if (!own_.empty()) {
    const UpdateBatch batch = own_.front();
    own_.erase(own_.begin());
    if (own_.empty())
      gradients_.start_with_backward();
    updates_->add_batch(
        batches_.batch(batch.index),
        {.seed = seed_of(setup_.config),
         .update = static_cast<uint64_t>(position_.update) + 1,
         .micro_batch = static_cast<uint64_t>(batch.place)});
    position_.micro_batch = batch.place + 1;
  }
  const bool update_over = own_.empty();
  if (update_over)
    position_.micro_batch = update_size(batches_.size(), training().accumulate, update);
  position_.batch = begin + position_.micro_batch;
  if (update_over)
    end_update();
  const double seconds = setup_.clock() - begun;
  position_.seconds += seconds;
  position_.logged_seconds += seconds;
  if (update_over)
    note_dues();
  progress_.show(status());
  if (setup_.after_batch)
    setup_.after_batch(position_);
}

void TrainLoop::end_update() {
  const StepOptions options = {
      .clip_norm = setup_.config.optimizer.clip_norm,
      .learning_rate = learning_rate(setup_.config.schedule, position_.update, plan_.end()),
      .shares = shares_};
  ++position_.update;
  updates_->end(options);
  position_.learning_rate = options.learning_rate;
  position_.micro_batch = 0;
}

void TrainLoop::note_dues() {
  if (position_.update % training().log_every == 0)
    log_training();
  const bool epoch_over = position_.batch == batches_.size();
  const auto is_due = [&](int64_t every) {
    return every > 0 ? position_.update % every == 0 : epoch_over;
  };
  const bool validation = is_due(training().validate_every);
  position_.validation_due = validation && valid_batches_;
  position_.checkpoint_due = training().save_every > 0 ? is_due(training().save_every) : validation;
}

void TrainLoop::settle() {
  // A model or checkpoint without a state could neither go on nor begin again.
  if ((position_.validation_due || position_.checkpoint_due) && !has_state_)
    save_state_file();
  if (position_.validation_due)
    validate();
  if (position_.checkpoint_due)
    save_checkpoint();
}

void TrainLoop::log_training() {
  updates_->read();
  const Json record = train_record(position_);
  writer_.write_record(record);
  if (!progress_.has_bar())
    progress_.line(record_line(record) + "  " + time_left_text(status()));
  updates_->begin_record();
  position_.logged_seconds = 0;
}

void TrainLoop::validate() {
  progress_.clear();
  const double begun = setup_.clock();
  ParameterAverage::InUse averaged(average_);
  const ValidationStop stop{
      .asked = [] { return stop_signal() != 0; },
      .agree =
          [&] {
            const int signal = any_signal();
            if (signal == 0)
              return;
            averaged.end();  // the state that is saved has each in its place
            stop_for(signal);
          }};
  ValidationResult result = measure_parameters(stop);
  averaged.end();
  state_is_last_ = false;
  result.best = is_gain(result) && can_be_saved();
  keep_best(result);
  const Json record = validation_record(position_, result);
  writer_.write_record(record);
  progress_.line(record_line(record, setup_.config.metrics));
  position_.validation_due = false;
  position_.validated_update = position_.update;
  plan_.add_validation(setup_.clock() - begun);
}

ValidationResult TrainLoop::measure_parameters(const ValidationStop& stop) {
  ValidationResult result;
  result.loss = validation_loss(
      *setup_.task->model(), *valid_batches_, loss_options(training()), processes(), stop);
  if (const auto metrics = training().metrics(); !metrics.empty())
    result.scores = setup_.task->validation_scores(metrics, processes(), stop);
  return result;
}

/// What the best checkpoint is chosen by.
double TrainLoop::measure(const ValidationResult& result) const {
  const auto chosen = training().best_metric();
  for (const TextScore& score : result.scores)
    if (score.metric == chosen)
      return score.score;
  return result.loss.loss_base2;
}

bool TrainLoop::is_gain(const ValidationResult& result) const {
  const double now = measure(result);
  const auto metric = training().best_metric();
  const bool larger = metric && make_metric(*metric, false)->larger_is_better();
  return std::isfinite(now) &&
      (!position_.has_best || (larger ? now > position_.best : now < position_.best));
}

void TrainLoop::keep_best(const ValidationResult& result) {
  if (!result.best) {
    ++position_.validations_without_gain;
    return;
  }
  position_.validations_without_gain = 0;
  position_.has_best = true;
  position_.best = measure(result);
  write_model();
}

/// Nothing may replace what was saved before by what no program opens.
bool TrainLoop::can_be_saved() {
  const auto own = find_unsound(tensors());
  const auto unsound = lowest_fault(processes(), own ? own->name : "");
  if (unsound.empty())
    return true;
  progress_.clear();
  log_warning(
      "after update ",
      position_.update,
      " numbers are NaN or infinite (",
      unsound,
      "): nothing is saved");
  return false;
}

void TrainLoop::save_checkpoint() {
  position_.checkpoint_due = false;
  if (!can_be_saved())
    return;
  position_.saved_update = position_.update;
  if (training().keep_last > 0)
    writer_.write_checkpoint(position_, average_);
  // Without validation text, or while no loss was finite, the last is the best.
  if (!position_.has_best)
    write_model();
  save_state_file();
  writer_.clean_up(position_);
}

void TrainLoop::write_model() {
  writer_.leave_stop(position_);
  position_.model_update = position_.update;
  writer_.write_parameters(setup_.folder.best(), position_, average_);
}

void TrainLoop::save_state_file() {
  updates_->read();
  position_.optimizer = optimizer_.scalars();
  position_.elapsed = plan_.elapsed();
  writer_.write_state(position_, tensors());
  has_state_ = state_is_last_ = true;
  saved_plan_ = position_.planned_updates;
}

void TrainLoop::stop_if_asked() {
  // Several processes stop between updates, where all are at the same place.
  if (!is_alone() &&
      (position_.micro_batch > 0 ||
       position_.update % processes().updates_between_questions() != 0))
    return;
  if (const int signal = any_signal())
    stop_for(signal);
}

int TrainLoop::any_signal() {
  return static_cast<int>(processes().largest(stop_signal()));
}

}  // namespace seqconv::internal
