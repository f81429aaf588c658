#pragma once

#include <ATen/record_function.h>

#include <utility>

namespace seqconv::internal::testing {

/// Calls work() while `observer` is told of what it calls in this thread, with
/// its inputs.
template <class Work>
void observed(at::RecordFunctionCallback observer, const Work& work) {
  const auto handle = at::addThreadLocalCallback(
      std::move(observer).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
  work();
  at::removeCallback(handle);
}

}  // namespace seqconv::internal::testing
