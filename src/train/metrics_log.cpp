#include "train/metrics_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/files.h"
#include "base/json_texts.h"
#include "base/log.h"
#include "base/options.h"

namespace seqconv::internal {
namespace {

/// The first `wanted` lines of a log, or as many as there are.
struct Kept {
  size_t bytes = 0;
  int64_t records = 0;
  int64_t damaged = 0;  ///< of them, no JSON objects
};

Kept kept_lines(const std::string& text, int64_t wanted) {
  Kept kept;
  for (; kept.records < wanted; ++kept.records) {
    const size_t end = text.find('\n', kept.bytes);
    if (end == std::string::npos)
      break;
    const std::string_view line(text.data() + kept.bytes, end - kept.bytes);
    kept.damaged += !line.starts_with('{') || !Json::accept(line);
    kept.bytes = end + 1;
  }
  return kept;
}

void warn_of_damage(const std::string& file, const Kept& kept, int64_t wanted) {
  if (kept.records < wanted)
    log_warning(
        file,
        " holds ",
        kept.records,
        " of the ",
        wanted,
        " records that the run has written; the others are lost");
  if (kept.damaged > 0)
    log_warning(
        file,
        " is damaged: ",
        kept.damaged,
        kept.damaged == 1 ? " of its lines is no record" : " of its lines are no records");
}

}  // namespace

MetricsLog::MetricsLog(const RootedPath& file, int64_t records) : path_(file.path()) {
  Kept kept;
  if (records > 0) {
    std::error_code none;
    if (std::filesystem::exists(std::filesystem::symlink_status(file, none)))
      kept = kept_lines(read_file(file), records);
    warn_of_damage(file.string(), kept, records);
  }
  records_ = kept.records;
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  const bool open = fd_ >= 0 && ::ftruncate(fd_, static_cast<off_t>(kept.bytes)) == 0;
  if (!open) {
    const std::string why = std::strerror(errno);
    if (fd_ >= 0)
      ::close(fd_);
    fail("cannot write '", file.string(), "': ", why);
  }
}

MetricsLog::~MetricsLog() {
  ::close(fd_);
}

void MetricsLog::write(const Json& record) {
  const std::string line = json_line(record) + "\n";
  const ssize_t written = ::write(fd_, line.data(), line.size());
  SEQCONV_CHECK(
      written == static_cast<ssize_t>(line.size()),
      "cannot write '",
      path_.string(),
      "': ",
      written < 0 ? std::strerror(errno) : "the disk is full");
  ++records_;
}

}  // namespace seqconv::internal
