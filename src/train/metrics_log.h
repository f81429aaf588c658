#pragma once

#include <cstdint>
#include <filesystem>

#include "base/json.h"
#include "base/rooted_path.h"

namespace seqconv::internal {

/// training/metrics.jsonl: one JSON object a line (docs/metrics.md), each
/// written at once, so that a reader sees whole lines.
class MetricsLog {
 public:
  /// Opens the file and cuts it back to its first `records` lines: what came
  /// after the state that a run resumes from will come again. Warns where it
  /// holds fewer, or lines that are no records.
  MetricsLog(const RootedPath& file, int64_t records);
  MetricsLog(const MetricsLog&) = delete;
  ~MetricsLog();

  void write(const Json& record);
  int64_t records() const { return records_; }

 private:
  std::filesystem::path path_;
  int fd_ = -1;
  int64_t records_ = 0;
};

}  // namespace seqconv::internal
