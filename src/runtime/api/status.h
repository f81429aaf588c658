#pragma once

#include <cstddef>
#include <exception>
#include <string>

#include "base/error.h"
#include "seqconv/seqconv.h"

/// Failures of the C interface: nothing is thrown over its border.
namespace seqconv::internal {

/// An Error whose status is known.
class CallError : public Error {
 public:
  CallError(seqconv_status status, const std::string& what) : Error(what), status_(status) {}
  seqconv_status status() const { return status_; }

 private:
  seqconv_status status_;
};

template <class... Args>
[[noreturn]] void fail_call(seqconv_status status, const Args&... args) {
  throw CallError(status, concat(args...));
}
template <class... Args>
[[noreturn]] void fail_option(const Args&... args) {
  fail_call(SEQCONV_OPTION_ERROR, args...);
}

/// Keeps the text of a failure for the calling thread's seqconv_last_error(); returns `status`.
seqconv_status keep_error(seqconv_status status, const char* text) noexcept;

/// Memory that is not there, or that no machine has.
bool is_no_memory(const std::exception& error) noexcept;

/// Says what an exception means to callers who know nothing of C++.
std::string message_of(const std::exception& error);

/// Keeps the text of an exception; returns SEQCONV_OUT_OF_MEMORY or `failure`.
seqconv_status keep_exception(seqconv_status failure, const std::exception& error) noexcept;

/// Does `work` and returns SEQCONV_OK; else the status of what it throws, that of the layers
/// below as `failure`. The text is kept.
template <class Work>
seqconv_status guarded(seqconv_status failure, const Work& work) noexcept {
  try {
    work();
    return SEQCONV_OK;
  } catch (const CallError& error) {
    return keep_error(error.status(), error.what());
  } catch (const std::exception& error) {
    return keep_exception(failure, error);
  } catch (...) {
    return keep_error(failure, "an exception of another language");
  }
}

}  // namespace seqconv::internal
