#pragma once

#include <string>

#include "seqconv/base/error.h"
#include "seqconv/base/options.h"

namespace seqconv {

/// UsageError for a number outside [low, high], NaN among them; `path` is that
/// of the table that holds `key`.
template <class T>
void check_between(
    const std::string& path,
    const char* key,
    T value,
    T low,
    T high) {
  if (!(value >= low && value <= high))
    fail_usage(
        detail::join_key(path, key),
        " must be between ",
        low,
        " and ",
        high,
        ", but got ",
        value);
}

}  // namespace seqconv
