#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/rooted_path.h"
#include "model/model_checkpoints.h"

namespace seqconv::internal {

/// Where a training run keeps what, inside its model folder.
struct RunFolder {
  RootedPath root;

  std::filesystem::path config() const { return root / "config.json"; }
  RootedPath best() const { return root / "model.safetensors"; }
  /// The parameters of the last update, where the run has ended and they are not the best.
  RootedPath last() const { return root / kLastParameters; }
  /// The best of the run as its state counts, while that of a stop lies in its place.
  RootedPath kept_best() const { return root / "training/best.safetensors"; }
  std::filesystem::path training() const { return root / "training"; }
  RootedPath state() const { return root / "training/state.safetensors"; }
  RootedPath metrics() const { return root / "training/metrics.jsonl"; }
  /// Holds files for TensorBoard.
  std::filesystem::path events() const { return training() / "tensorboard"; }
  std::filesystem::path settings() const { return training() / "config.toml"; }
  std::filesystem::path data() const { return training() / "data"; }
  /// Says what was prepared there.
  std::filesystem::path stamp() const { return data() / "stamp.json"; }
  std::filesystem::path lock() const { return training() / "lock"; }
  std::filesystem::path checkpoints() const { return training() / "checkpoints"; }
  /// checkpoints/update-00001234.safetensors
  std::filesystem::path checkpoint(int64_t update) const;

  bool holds_model() const {
    return std::filesystem::exists(best()) || std::filesystem::exists(last());
  }
  bool holds_state() const { return std::filesystem::exists(state()); }
};

/// Deletes the checkpoints of the updates `own`, in ascending order, all but
/// the last `keep`, which remain in `own`. Whatever else lies there is
/// another's.
void remove_old_checkpoints(const RunFolder& folder, std::vector<int64_t>& own, int64_t keep);

/// The updates, in ascending order, of checkpoints in the folder that are none
/// of `own`.
std::vector<int64_t> other_checkpoints(const RunFolder& folder, const std::vector<int64_t>& own);

/// Gives a file of another run, in whose place one of this run comes, a name
/// that no run writes to: "NAME.other-1.EXTENSION", which is returned, or ""
/// where there is no file.
std::filesystem::path set_aside(const std::filesystem::path& file);

/// Deletes the unfinished files (base/atomic_file.h) of processes that have
/// ended, and with `own` those of this one: another of its number left them.
/// Only the holder of the folder's lock may do so.
void remove_leftovers(const RunFolder& folder, bool own);

}  // namespace seqconv::internal
