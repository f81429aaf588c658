#include "train/training_speed.h"

#include <fstream>
#include <limits>

#include "base/files.h"
#include "base/log.h"
#include "base/options.h"
#include "base/signals.h"
#include "base/stopwatch.h"
#include "train/train_loop.h"

namespace seqconv::internal {
namespace {

/// A speed is known after so many seconds, or where so many updates took this long.
constexpr double kSeconds = 5;
constexpr double kFewSeconds = 1;
constexpr int64_t kManyUpdates = 20;
/// Nobody waits longer for the second update.
constexpr double kMostSeconds = 30;

/// Thrown to leave a run whose speed is known.
struct Timed {};

/// Lets nothing but errors be logged while it lives.
class Quiet {
 public:
  Quiet() : before_(log_level()) { set_log_level(LogLevel::kError); }
  Quiet(const Quiet&) = delete;
  ~Quiet() { set_log_level(before_); }

 private:
  LogLevel before_;
};

/// The options of a run that ends by no limit, and records each update.
void make_endless(TrainConfig& config) {
  TrainingOptions& training = config.training;
  training.max_epochs = 0;
  training.max_minutes = 0;
  training.patience = 0;
  training.tensorboard = false;
  training.log_every = 1;
  training.max_updates = training.validate_every = training.save_every =
      std::numeric_limits<int32_t>::max();
}

/// The instants at which updates have ended.
class UpdateTimes {
 public:
  /// Takes note of a batch; Timed when enough is known.
  void note(const Position& position) {
    if (const int signal = stop_signal())
      throw Interrupted(signal, "interrupted: a dry run writes nothing");
    const double now = now_ += watch_.lap();
    if (position.micro_batch == 0) {
      (first_update_ == 0 ? first_ : last_) = now;
      (first_update_ == 0 ? first_update_ : last_update_) = position.update;
    }
    const bool many = updates() >= kManyUpdates && now >= kFewSeconds;
    if (many || (now >= kSeconds && updates() > 0) || now >= kMostSeconds)
      throw Timed();
  }

  int64_t updates() const { return std::max<int64_t>(last_update_ - first_update_, 0); }
  double seconds_of_updates() const { return last_ - first_; }

 private:
  Stopwatch watch_;
  double now_ = 0;  // seconds since the first lap began
  int64_t first_update_ = 0;
  int64_t last_update_ = 0;
  double first_ = 0;
  double last_ = 0;
};

/// Counts those of the updates behind the first, by the records of the run.
int64_t target_tokens(const RunFolder& folder, int64_t updates) {
  int64_t tokens = 0;
  std::ifstream lines(folder.metrics().path());
  for (std::string line; std::getline(lines, line);) {
    const Json record = Json::parse(line);
    const int64_t update = record.at("update");
    if (record.at("kind") == "train" && update > 1 && update <= updates + 1)
      tokens += record.at("target_tokens").get<int64_t>();
  }
  return tokens;
}

}  // namespace

std::optional<TrainingSpeed> measure_speed(RunSetup setup) {
  const RunFolder folder = setup.folder;
  create_folder(folder.training());
  make_endless(setup.config);
  setup.data.valid.reset();
  UpdateTimes times;
  setup.clock = [] { return 0.0; };
  setup.after_batch = [&times](const Position& position) { times.note(position); };
  try {
    const Quiet quiet;
    TrainLoop(std::move(setup)).run();
  } catch (const Timed&) {}
  TrainingSpeed speed{.updates = times.updates()};
  if (speed.updates == 0) {
    log_info("speed: not known, as two updates take longer than ", kMostSeconds, " s");
    return std::nullopt;
  }
  const double seconds = std::max(times.seconds_of_updates(), 1e-9);
  speed.seconds_per_update = seconds / static_cast<double>(speed.updates);
  speed.tokens_per_second = static_cast<double>(target_tokens(folder, speed.updates)) / seconds;
  return speed;
}

}  // namespace seqconv::internal
