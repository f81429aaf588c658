#pragma once

#include <filesystem>
#include <functional>
#include <vector>

namespace seqconv::internal {

struct ModelFiles;

/// config.json and the files of text that it names: all that opening a model
/// reads but its parameters.
std::vector<std::filesystem::path> description_files(const ModelFiles& model);

/// Writes a model into a folder, which is made where it is missing:
/// `write_parameters` into the file that it is given, then `describe` what is
/// beside it, config.json last. A model that was there stays until all
/// parameters are on the disk; from then to the end config.json says that the
/// folder is unfinished, so that nobody takes one's parameters with the other's
/// text, and the same command may be given again. The last parameters of another
/// model go with it. Error as by check_own_folder().
void write_model_folder(
    const std::filesystem::path& folder,
    const std::function<void(const std::filesystem::path&)>& write_parameters,
    const std::function<void()>& describe);

}  // namespace seqconv::internal
