#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "base/json.h"
#include "serve/http_server.h"

/// Answers of a server: JSON, faults as {"error": …}, events.
namespace seqconv::internal {

/// A request that makes no sense, or is not allowed: its answer is {"error": …}.
class CallError : public std::runtime_error {
 public:
  CallError(unsigned status, const std::string& text, int64_t retry_after = 0)
      : std::runtime_error(text), status_(status), retry_after_(retry_after) {}
  unsigned status() const { return status_; }
  int64_t retry_after() const { return retry_after_; }  ///< seconds; 0: not said

 private:
  unsigned status_;
  int64_t retry_after_;
};

HttpAnswer json_answer(const Json& json);

/// {"error": …} with the status.
HttpAnswer error_answer(unsigned status, const std::string& text, int64_t retry_after = 0);

/// The answer for the exception that is being handled; what is the server's own fault is said in
/// its log alone.
HttpAnswer answer_for_fault() noexcept;

/// The head of an answer that is a stream of events.
HttpAnswer event_stream();

/// A server-sent event whose data is a line, such as an answer's JSON.
std::string event_text(const char* name, std::string_view data);

}  // namespace seqconv::internal
