#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace seqconv::internal::testing {

/// The message of the E that `action` throws; a failure (and "") when it throws
/// nothing or something else.
template <class E = Error, class Action>
std::string error_of(Action&& action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another kind of error: " << error.what();
    return "";
  }
  ADD_FAILURE() << "no error";
  return "";
}

/// Whether `action` throws no Error.
template <class Action>
bool succeeds(Action&& action) {
  try {
    action();
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace seqconv::internal::testing
