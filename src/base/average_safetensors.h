#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/rooted_path.h"

namespace seqconv::internal {

/// Writes the mean of checkpoints, tensor by tensor, as float32; the sums are
/// kept in float64. Each checkpoint weighs `decay` times, above 0 and at most
/// 1, what the next one weighs: 1 gives the arithmetic mean, less an
/// exponential moving one (semantics.md 3.3). Every file must hold the same
/// names with the same shapes, of a floating-point type, and only finite
/// numbers; Error otherwise, naming the file and the tensor. The output is
/// written atomically and may be one of the inputs.
void average_safetensors(
    const std::vector<RootedPath>& files,
    const std::filesystem::path& output,
    const std::map<std::string, std::string>& metadata,
    double decay = 1);

}  // namespace seqconv::internal
