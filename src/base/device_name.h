#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace seqconv::internal {

/// Says where a model is to run, as configurations and command lines have it:
/// "auto", "cpu", "cuda" or "cuda:N".
struct DeviceName {
  enum class Kind {
    kAuto,  ///< a CUDA device where there is one
    kCpu,
    kCuda,
  };

  Kind kind = Kind::kCpu;
  int64_t index = -1;  ///< N of a CUDA device; -1: not given
};

/// UsageError, with the name of the option, for other texts.
DeviceName parse_device_name(std::string_view option, const std::string& text);

}  // namespace seqconv::internal
