#pragma once

#include <cstddef>
#include <span>

#include "base/error.h"
#include "model/checkpoint/fairseq_architecture.h"
#include "model/checkpoint/fairseq_checkpoint.h"
#include "model/checkpoint/fairseq_names.h"
#include "model/checkpoint/pytorch_file.h"

namespace seqconv::internal::testing {

/// Every tensor of a file, whoever refers to it, and its settings.
inline size_t read_tensors(const PyTorchFile& file) {
  size_t total = file.root().settings().size();
  const Pickle& pickle = file.pickle();
  for (PickleId id = 0; id < pickle.nodes().size(); ++id) {
    const PickleValue value(pickle, id);
    if (!PyTorchFile::is_tensor(value))
      continue;
    file.check_storage(value);
    file.tensor(value, "t").visit([&](auto piece) { total += piece.size(); });
  }
  return total;
}

/// Does with the bytes of a file all that an import does with them. True when
/// they are a file of tensors; anything but true or an Error inside is a
/// defect.
inline bool read_everything(std::span<const std::byte> bytes) {
  try {
    read_tensors(PyTorchFile(bytes, "file"));
  } catch (const Error&) {
    return false;
  }
  try {
    const FairseqCheckpoint checkpoint(PyTorchFile(bytes, "file"), CheckpointWeights::kTrained);
    const auto found = deduce_architecture(checkpoint, nullptr);
    fairseq_layout(found.options, found.task, {8, 8});
  } catch (const Error&) {
    // Tensors, but no model.
  }
  return true;
}

}  // namespace seqconv::internal::testing
