#include "base/device_name.h"

#include <charconv>

#include "base/error.h"

namespace seqconv::internal {

DeviceName parse_device_name(std::string_view option, const std::string& text) {
  using Kind = DeviceName::Kind;
  constexpr std::string_view kCuda = "cuda:";
  if (text == "auto")
    return {Kind::kAuto};
  if (text == "cpu")
    return {Kind::kCpu};
  if (text == "cuda")
    return {Kind::kCuda};
  if (text.starts_with(kCuda)) {
    DeviceName name{Kind::kCuda};
    const char* end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data() + kCuda.size(), end, name.index);
    // Device numbers of LibTorch are signed bytes.
    if (parsed.ec == std::errc() && parsed.ptr == end && name.index >= 0 && name.index < 128)
      return name;
  }
  fail_usage(
      option,
      " must be auto, cpu, cuda or cuda:N, N the number of a device from 0, but got '",
      text,
      "'");
}

}  // namespace seqconv::internal
