#pragma once

#include <cstdint>
#include <string>

namespace seqconv::internal {

/// "0:07", "12:34", "3:05:00", "2d 03:05".
std::string duration_text(double seconds);

/// Where a run stands, for the eye.
struct ProgressStatus {
  int64_t epoch = 1;
  int64_t max_epochs = 0;  ///< 0: no limit
  int64_t batch = 0;
  int64_t batches = 0;            ///< of the epoch
  int64_t updates_left = -1;      ///< of the run, -1: not known
  double seconds_per_update = 0;  ///< 0: not known yet
  double seconds_left = -1;       ///< of the run's time, -1: no limit
  double loss_base2 = 0;          ///< 0: not known yet
  double tokens_per_second = 0;
};

/// "12:30 left", or "" when the end or the speed is not known.
std::string time_left_text(const ProgressStatus& status);

/// "epoch 2/14 [######----]  61 %  loss 4.13  3201 tok/s  12:30 left".
std::string progress_bar(const ProgressStatus& status);

/// What a person sees of a run on standard error: on a terminal a bar below
/// the lines, otherwise the lines alone; nothing when the log is quiet.
class Progress {
 public:
  Progress();
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;

  /// Whether a bar is drawn: standard error is a terminal that can do it
  /// (TERM is not dumb, NO_COLOR is not set) and information is logged.
  bool has_bar() const { return has_bar_; }
  /// Draws the bar, at most ten times a second.
  void show(const ProgressStatus& status);
  /// A line of text that stays.
  void line(const std::string& text);
  /// Takes the bar away.
  void clear();

 private:
  bool has_bar_;
  size_t width_ = 0;  // of the bar on the screen
  std::chrono::steady_clock::time_point drawn_;
};

}  // namespace seqconv::internal
