#pragma once

#include <string>
#include <vector>

#include "base/safetensors.h"
#include "model/parameters.h"

/// A model's parameters as a file holds them: floating-point numbers, or, of
/// quantized models, matrices of int8 with a scale each row.
namespace seqconv::internal {

/// The tensor of the scales [N] that belongs to a matrix [N, K] of int8.
std::string scale_name(const std::string& matrix);

/// Error when a file holds such matrices, of which `reader` ("LibTorch") can
/// make nothing.
void refuse_int8(const SafetensorsReader& parameters, const std::string& reader);

/// Error unless a file holds `wanted`, which config.json tells: all of them in
/// their shapes and nothing else, of a floating-point type and finite as
/// float32. A matrix may be int8 instead, with its scales.
void check_parameters(const SafetensorsReader& reader, const std::vector<ParameterShape>& wanted);

}  // namespace seqconv::internal
