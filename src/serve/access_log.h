#pragma once

#include <mutex>
#include <string>

#include "serve/http_server.h"

namespace seqconv::internal {

/// A line of JSON per request: time, method, path, status, bytes, seconds. No text, key, query or
/// address is in it. Any thread.
class AccessLog {
 public:
  /// `file` is appended to; "-": standard output; "": nothing is written. Error where it cannot
  /// be written.
  explicit AccessLog(std::string file);
  ~AccessLog();
  AccessLog(const AccessLog&) = delete;
  AccessLog& operator=(const AccessLog&) = delete;

  /// A line that cannot be written is dropped, and said on standard error once.
  void add(const HttpRecord& record);
  /// Opens the file anew, which may have been renamed. Error; the old one stays open then.
  void reopen();

 private:
  const std::string file_;
  std::mutex mutex_;
  int descriptor_ = -1;
  bool has_failed_ = false;
};

}  // namespace seqconv::internal
