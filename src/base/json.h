#pragma once

#include <nlohmann/json_fwd.hpp>

namespace seqconv::internal {

/// JSON values, whose tables keep the order of their keys. This header only
/// names the type; base/options.h defines it.
using Json = nlohmann::ordered_json;

}  // namespace seqconv::internal
