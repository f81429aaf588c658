#pragma once

#include <chrono>
#include <ostream>
#include <sstream>

#include "cli/verbs/parts_folder.h"

namespace seqconv::internal::verbs {

/// The output of a part, and its record, which is never ahead of it. The record
/// is written as often as costs no more than a fiftieth of the time.
class PartWriter {
 public:
  /// Goes on behind `progress`. Error when the part has fewer bytes than that.
  PartWriter(const PartsFolder& folder, PartProgress progress);
  PartWriter(const PartWriter&) = delete;
  PartWriter& operator=(const PartWriter&) = delete;
  ~PartWriter();

  std::ostream& stream() { return out_; }
  const PartProgress& progress() const { return progress_; }
  /// Everything up to `progress` has been written to stream(), which keeps it
  /// until now; its bytes are counted here. Error when they cannot be written.
  void reached(const PartProgress& progress);
  void finish();

 private:
  using Clock = std::chrono::steady_clock;

  [[noreturn]] void fail_writing() const;
  void write_out();
  void save();

  const PartsFolder& folder_;
  PartProgress progress_;
  std::ostringstream out_;
  int fd_;
  Clock::time_point next_save_ = Clock::now();
};

}  // namespace seqconv::internal::verbs
