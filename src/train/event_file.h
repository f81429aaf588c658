#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"

namespace seqconv::internal {

/// Named numbers at one step of a run.
using Scalars = std::vector<std::pair<std::string, float>>;

/// A record as TFRecord files frame it: its length (uint64), the masked CRC-32C
/// of these eight bytes, the record, and its own; little-endian.
std::string framed_record(std::string_view record);

/// TensorBoard's Event messages in protocol buffers' wire format
/// (tensorboard/compat/proto/event.proto). The first one of a file names the
/// format; one that says a session starts at `step` takes back what earlier
/// files have from that step on.
std::string version_event(double time);
std::string session_start_event(double time, int64_t step);
std::string scalars_event(double time, int64_t step, const Scalars& scalars);

/// What TensorBoard is told of a record of metrics.jsonl: its finite numbers by
/// "kind/key", but for those that place it.
Scalars scalars_of(const Json& record);

/// A file of events (docs/metrics.md), a new one each time that a run begins or
/// goes on.
class EventFile {
 public:
  /// Creates a file in `folder`, which readers take for the last one. Where
  /// others are, of this run or of one that began here before, it takes back
  /// what they have from step `first` on.
  EventFile(const std::filesystem::path& folder, int64_t first);
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;
  ~EventFile();

  /// Appends the numbers of a record of metrics.jsonl, at once.
  void write(const Json& record);
  const std::filesystem::path& path() const { return path_; }

 private:
  void append(const std::string& event);

  std::filesystem::path path_;
  int fd_ = -1;
};

}  // namespace seqconv::internal
