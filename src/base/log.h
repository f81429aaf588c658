#pragma once

#include <string>

#include "base/error.h"

namespace seqconv::internal {

/// Says what reaches standard error: everything, warnings and errors, or
/// nothing but errors.
enum class LogLevel { kInfo, kWarning, kError };

void set_log_level(LogLevel level);
LogLevel log_level();

/// One line on standard error, in one write; what a message quotes may hold
/// anything, and is shown as by one_line. Never on standard output.
void log_line(LogLevel level, const std::string& line);

/// Says why the program ends, whatever the level: an error as one, what a signal asked for as it
/// is.
void log_end(const Error& error);

template <class... Parts>
void log_info(const Parts&... parts) {
  if (log_level() <= LogLevel::kInfo)
    log_line(LogLevel::kInfo, concat(parts...));
}

template <class... Parts>
void log_warning(const Parts&... parts) {
  log_line(LogLevel::kWarning, concat(parts...));
}

}  // namespace seqconv::internal
