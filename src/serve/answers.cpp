#include "serve/answers.h"

#include <new>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_texts.h"
#include "base/log.h"
#include "seqconv/runtime.h"

namespace seqconv::internal {

HttpAnswer json_answer(const Json& json) {
  return {200, "application/json", json_line(json), {}};
}

HttpAnswer error_answer(unsigned status, const std::string& text, int64_t retry_after) {
  HttpAnswer answer{status, "application/json", json_line({{"error", text}}), {}};
  if (retry_after > 0)
    answer.headers.emplace_back("Retry-After", std::to_string(retry_after));
  return answer;
}

HttpAnswer answer_for_fault() noexcept {
  try {
    try {
      throw;
    } catch (const CallError& error) {
      return error_answer(error.status(), error.what(), error.retry_after());
    } catch (const seqconv::OutOfMemory&) {
      return error_answer(503, "There is not memory enough", 1);
    } catch (const std::bad_alloc&) {
      return error_answer(503, "There is not memory enough", 1);
    } catch (const std::exception& error) {
      log_line(LogLevel::kError, error.what());
      return error_answer(500, "The server cannot do this; its log says why");
    }
  } catch (...) {  // no memory for the words
    return {503, "", "", {}};
  }
}

HttpAnswer event_stream() {
  return {
      200, "text/event-stream", "", {{"Cache-Control", "no-store"}, {"X-Accel-Buffering", "no"}}};
}

std::string event_text(const char* name, std::string_view data) {
  return concat("event: ", name, "\ndata: ", data, "\n\n");
}

}  // namespace seqconv::internal
