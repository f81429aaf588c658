#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/options.h"
#include "base/safetensors.h"

namespace seqconv::internal {

/// A tensor to write, row-major. Two of the same bytes share one storage.
struct NamedTensor {
  std::string name;
  TensorView view;
};

/// Holds what torch.load(weights_only=True) will give: a dictionary.
struct PyTorchContent {
  /// Entries beside the tensors, in order.
  Json settings = Json::object();
  /// The key of the tensors' dictionary; empty: they are the dictionary, and
  /// there are no settings.
  std::string key;
  std::vector<NamedTensor> tensors;
};

/// Writes a file of PyTorch's zip container atomically, as torch.save would:
/// storages aligned to 64 bytes, zip64 where it is needed. Error for a type
/// that PyTorch files of models do not have.
void write_pytorch(const std::filesystem::path& path, const PyTorchContent& content);

}  // namespace seqconv::internal
