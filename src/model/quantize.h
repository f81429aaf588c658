#pragma once

#include <filesystem>
#include <vector>

#include "base/safetensors.h"
#include "model/parameters.h"

namespace seqconv::internal {

/// Writes parameters, which check_parameters has seen, with each row of their
/// matrices rounded to int8: see kernels::quantize_row(). Biases, norms, taps
/// and learned positions become float32.
void quantize_parameters(
    const SafetensorsReader& reader,
    const std::vector<ParameterShape>& parameters,
    const std::filesystem::path& output);

/// Writes the folder `output` with the model of `model` (a folder, or a
/// checkpoint in one) in int8: a quarter of the size, for the runtime alone.
/// Errors: what find_model and check_parameters say, a model that is int8
/// already, and an output that is the model's own folder or belongs to a
/// training.
void quantize_model(const RootedPath& model, const std::filesystem::path& output);

}  // namespace seqconv::internal
