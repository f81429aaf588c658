#pragma once

#include "base/error.h"
#include "base/option_names.h"

namespace seqconv::internal {

/// UsageError for a number outside [low, high], NaN among them.
template <class T>
void check_between(const OptionNames& names, const char* key, T value, T low, T high) {
  if (!(value >= low && value <= high))
    fail_usage(names(key), " must be between ", low, " and ", high, ", but got ", value);
}

}  // namespace seqconv::internal
