#pragma once

#include <map>
#include <string>

#include "base/options.h"
#include "base/rooted_path.h"
#include "base/safetensors.h"
#include "train/position.h"

/// What a training state says in words; its tensors are those of checkpoint.h.
/// Free of LibTorch: whatever a file holds, reading it is an Error at most.
namespace seqconv::internal {

/// The version of training states. Whoever changes what a state's buffers or
/// position mean, or how the numbers that follow are drawn from them, raises it
/// and leaves a state of the version before in tests/model/folders:
/// docs/model_folder.md has the rule.
inline constexpr int64_t kStateVersion = 1;

/// The metadata's "format".
std::string state_format();

/// Over the tensors and all metadata but the checksum itself.
std::string state_checksum(
    const std::map<std::string, TensorView>& views,
    const std::map<std::string, std::string>& metadata);

/// The text of a key of the metadata, which must be there.
const std::string& state_metadata(const SafetensorsReader& reader, const char* key);

/// What save_state wrote, but for the tensors. Error for a file that is
/// truncated, damaged or from another version of the program.
struct SavedState {
  Position position;
  Json settings;
};
SavedState read_state(const RootedPath& file);

}  // namespace seqconv::internal
