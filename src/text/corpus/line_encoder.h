#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace seqconv::internal {

/// Turns a raw line into ids without </s>.
using LineEncoder = std::function<std::vector<int32_t>(std::string_view)>;

}  // namespace seqconv::internal
