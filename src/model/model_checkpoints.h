#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/rooted_path.h"

/// The parameters that the folder of a training run holds besides the best.
namespace seqconv::internal {

/// The file of a run's last parameters, where it has ended or was stopped and others are the best.
inline constexpr const char* kLastParameters = "model.last.safetensors";

/// The names that choose_checkpoint() knows, beside "update-N".
inline constexpr const char* kBestCheckpoint = "best";
inline constexpr const char* kLastCheckpoint = "last";

/// "update-00002000.safetensors", the file of a run's checkpoint in training/checkpoints.
std::string checkpoint_name(int64_t update);

/// The update of a checkpoint by its file's name; -1 for any other name.
int64_t update_of_checkpoint(const std::filesystem::path& name);

/// The update that a file of parameters says it is of, -1 where it says nothing. Error for a file
/// that cannot be read.
int64_t update_of_parameters(const RootedPath& file);

/// Chooses among the parameters of a model folder, for find_model(): "best" is the path as it is;
/// "last" is model.last.safetensors or, where that is missing, the latest of training/checkpoints
/// and model.safetensors, which is told. A checkpoint counts if the run's state has it for its
/// own. "update-N" is the file of that update. UsageError for another name, and for a path that
/// is no folder where a choice was made; Error, with a list of what is there, where nothing fits.
RootedPath choose_checkpoint(const RootedPath& model, const std::string& name);

}  // namespace seqconv::internal
