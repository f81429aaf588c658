#pragma once

#include <filesystem>

#include "seqconv/base/options.h"

namespace seqconv::cli {

/// A checkpoint and the model folder it belongs to, seen without tensors.
struct ModelFiles {
  std::filesystem::path folder;      ///< holds config.json
  std::filesystem::path checkpoint;  ///< a .safetensors file
  Json config;                       ///< config.json
};

/// `path` is a model folder (then its model.safetensors) or a .safetensors file
/// in or below one. Error names what is missing.
ModelFiles find_model(const std::filesystem::path& path);

}  // namespace seqconv::cli
