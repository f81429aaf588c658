#pragma once

#include <cstdint>
#include <filesystem>

namespace seqconv {

/// Where a training run keeps what, inside its model folder.
struct RunFolder {
  std::filesystem::path root;

  std::filesystem::path config() const { return root / "config.json"; }
  std::filesystem::path best() const { return root / "model.safetensors"; }
  std::filesystem::path training() const { return root / "training"; }
  std::filesystem::path state() const {
    return training() / "state.safetensors";
  }
  std::filesystem::path metrics() const { return training() / "metrics.jsonl"; }
  std::filesystem::path settings() const { return training() / "config.toml"; }
  std::filesystem::path data() const { return training() / "data"; }
  std::filesystem::path checkpoints() const {
    return training() / "checkpoints";
  }
  /// checkpoints/update-00001234.safetensors
  std::filesystem::path checkpoint(int64_t update) const;

  /// Whether a run has already left parameters or a state here.
  bool holds_model() const;
};

/// Deletes the oldest checkpoints up to `update`, all but the last `keep`.
void remove_old_checkpoints(
    const RunFolder& folder,
    int64_t update,
    int64_t keep);

}  // namespace seqconv
