#include "base/log.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "base/one_line.h"

namespace seqconv::internal {
namespace {

std::atomic<LogLevel> g_level{LogLevel::kInfo};

const char* prefix(LogLevel level) {
  switch (level) {
    case LogLevel::kInfo:
      return "";
    case LogLevel::kWarning:
      return "warning: ";
    case LogLevel::kError:
      return "error: ";
  }
  return "";
}

void write_line(const std::string& line) {
  const std::string text = line + "\n";
  size_t written = 0;
  while (written < text.size()) {
    const ssize_t n = ::write(STDERR_FILENO, text.data() + written, text.size() - written);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return;  // nobody listens: nothing sensible is left to do
    written += static_cast<size_t>(n);
  }
}

}  // namespace

void set_log_level(LogLevel level) {
  g_level = level;
}

LogLevel log_level() {
  return g_level;
}

void log_line(LogLevel level, const std::string& line) {
  if (level >= g_level)
    write_line(prefix(level) + one_line(line));
}

void log_end(const Error& error) {
  const bool was_asked = dynamic_cast<const Interrupted*>(&error) != nullptr;
  write_line((was_asked ? "" : prefix(LogLevel::kError)) + one_line(error.what()));
}

}  // namespace seqconv::internal
