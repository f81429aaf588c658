#pragma once

#include <torch/nn/module.h>

#include <filesystem>
#include <map>
#include <string>

#include "base/rooted_path.h"

namespace seqconv::internal {

/// Parameters by name, as safetensors (float32), written atomically.
void save_parameters(
    const std::filesystem::path& file,
    const torch::nn::Module& model,
    const std::map<std::string, std::string>& metadata);

/// Fills `model` from a safetensors file; every name and shape must fit, and
/// every number be finite.
void load_parameters(const RootedPath& file, torch::nn::Module& model);

}  // namespace seqconv::internal
