#pragma once

#include <atomic>
#include <exception>
#include <new>
#include <string>

#include "base/error.h"
#include "seqconv/runtime.h"

namespace seqconv {

/// Made when the library is loaded: throwing a copy needs no memory.
const OutOfMemory& out_of_memory();

/// Returns what `work` gives; throws what it throws as an Error of this
/// library, that of the layers below as `Failure`.
template <class Failure = Error, class Work>
auto guarded(const Work& work) {
  try {
    return work();
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw out_of_memory();
  } catch (const std::exception& error) {
    throw Failure(error.what());
  }
}

/// A function of the caller's, of which the loops below shall not see what it
/// throws. One thread at a time calls it; any may ask whether it threw.
class CallerFunction {
 public:
  bool has_thrown() const { return has_thrown_; }

  /// Makes `call`, unless one has thrown before.
  template <class Call>
  void make(const Call& call) {
    if (has_thrown_)
      return;
    try {
      call();
    } catch (...) {
      exception_ = std::current_exception();
      has_thrown_ = true;
    }
  }

  /// Throws what a call threw.
  void rethrow() const {
    if (has_thrown_)
      std::rethrow_exception(exception_);
  }

 private:
  std::atomic<bool> has_thrown_ = false;
  std::exception_ptr exception_;
};

}  // namespace seqconv
