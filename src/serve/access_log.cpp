#include "serve/access_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/json_texts.h"
#include "base/log.h"

namespace seqconv::internal {
namespace {

constexpr size_t kLongestPath = 200;

/// "2026-11-29T15:23:25.123Z"
std::string time_text() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  const std::time_t seconds = milliseconds / 1000;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[40];
  const size_t size = std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text + size, sizeof(text) - size, ".%03dZ", static_cast<int>(milliseconds % 1000));
  return text;
}

}  // namespace

AccessLog::AccessLog(std::string file) : file_(std::move(file)) {
  if (!file_.empty())
    reopen();
}

AccessLog::~AccessLog() {
  if (descriptor_ > STDERR_FILENO)
    ::close(descriptor_);
}

void AccessLog::reopen() {
  if (file_.empty())
    return;
  const int opened = file_ == "-"
      ? STDOUT_FILENO
      : ::open(file_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
  if (opened < 0)
    fail("cannot write the access log '", file_, "': ", std::strerror(errno));
  const std::lock_guard lock(mutex_);
  if (descriptor_ > STDERR_FILENO)
    ::close(descriptor_);
  descriptor_ = opened;
}

void AccessLog::add(const HttpRecord& record) {
  if (file_.empty())
    return;
  const Json line = {
      {"time", time_text()},
      {"method", record.method},
      {"path", record.path.substr(0, kLongestPath)},
      {"status", record.status},
      {"request_bytes", record.request_bytes},
      {"answer_bytes", record.answer_bytes},
      {"seconds", std::round(record.seconds * 1e6) / 1e6}};
  const std::string text = json_line(line) + "\n";
  const std::lock_guard lock(mutex_);
  if (::write(descriptor_, text.data(), text.size()) == static_cast<ssize_t>(text.size()))
    has_failed_ = false;
  else if (!std::exchange(has_failed_, true))
    log_line(
        LogLevel::kWarning,
        concat("cannot write the access log '", file_, "': ", std::strerror(errno)));
}

}  // namespace seqconv::internal
