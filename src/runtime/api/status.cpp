#include "runtime/api/status.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <system_error>

#include "seqconv/version.h"

namespace seqconv::internal {
namespace {

/// Room for a path of the longest kind and what is said about it. Keeping a text needs no memory.
thread_local char last_error[6144] = "";

}  // namespace

seqconv_status keep_error(seqconv_status status, const char* text) noexcept {
  size_t size = std::min(std::strlen(text), sizeof(last_error) - 1);
  // No character is cut in two.
  while (text[size] != '\0' && (text[size] & 0xC0) == 0x80)
    --size;
  std::memmove(last_error, text, size);
  last_error[size] = '\0';
  return status;
}

bool is_no_memory(const std::exception& error) noexcept {
  return dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
      dynamic_cast<const std::length_error*>(&error) != nullptr;
}

std::string message_of(const std::exception& error) {
  if (is_no_memory(error))
    return "out of memory";
  // Ours and the system's are for people.
  if (dynamic_cast<const Error*>(&error) != nullptr ||
      dynamic_cast<const std::system_error*>(&error) != nullptr)
    return error.what();
  return concat("a fault of the library's own, which its authors want to know of: ", error.what());
}

seqconv_status keep_exception(seqconv_status failure, const std::exception& error) noexcept {
  try {
    if (!is_no_memory(error))
      return keep_error(failure, message_of(error).c_str());
  } catch (const std::bad_alloc&) {}
  return keep_error(SEQCONV_OUT_OF_MEMORY, "out of memory");
}

}  // namespace seqconv::internal

extern "C" {

const char* seqconv_version(void) {
  return seqconv::version();
}

const char* seqconv_last_error(void) {
  return seqconv::internal::last_error;
}

const char* seqconv_status_name(int32_t status) {
  switch (status) {
    case SEQCONV_OK:
      return "ok";
    case SEQCONV_INVALID:
      return "invalid request";
    case SEQCONV_FAILED:
      return "failed";
    case SEQCONV_OUT_OF_MEMORY:
      return "out of memory";
    case SEQCONV_CANCELLED:
      return "cancelled";
    case SEQCONV_TIMED_OUT:
      return "timed out";
    case SEQCONV_PART:
      return "part of a result";
    case SEQCONV_MODEL_ERROR:
      return "model cannot be opened";
    case SEQCONV_OPTION_ERROR:
      return "invalid argument";
    case SEQCONV_TASK_ERROR:
      return "model of another task";
    case SEQCONV_QUEUE_FULL:
      return "queue is full";
    case SEQCONV_EMPTY:
      return "queue is empty";
    case SEQCONV_WRONG_PROCESS:
      return "made by another process";
    case SEQCONV_ERROR:
      return "error";
    default:
      return "unknown status";
  }
}

}  // extern "C"
