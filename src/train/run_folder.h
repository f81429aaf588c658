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
  /// Holds files for TensorBoard.
  std::filesystem::path events() const { return training() / "tensorboard"; }
  std::filesystem::path settings() const { return training() / "config.toml"; }
  std::filesystem::path data() const { return training() / "data"; }
  /// Says what was prepared there.
  std::filesystem::path stamp() const { return data() / "stamp.json"; }
  std::filesystem::path lock() const { return training() / "lock"; }
  std::filesystem::path checkpoints() const {
    return training() / "checkpoints";
  }
  /// checkpoints/update-00001234.safetensors
  std::filesystem::path checkpoint(int64_t update) const;

  bool holds_model() const { return std::filesystem::exists(best()); }
  bool holds_state() const { return std::filesystem::exists(state()); }
};

/// Deletes the oldest checkpoints up to `update`, all but the last `keep`.
void remove_old_checkpoints(
    const RunFolder& folder,
    int64_t update,
    int64_t keep);

/// Deletes the unfinished files (base/atomic_file.h) of processes that have
/// ended, and with `own` those of this one: another of its number left them.
/// Only the holder of the folder's lock may do so.
void remove_leftovers(const RunFolder& folder, bool own);

}  // namespace seqconv
