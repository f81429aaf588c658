#include "train/run_folder.h"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/log.h"

namespace seqconv::internal {
namespace fs = std::filesystem;
namespace {

/// Whether a run writes files of such a name; the folder may hold others.
bool is_ours(const std::string& name) {
  static constexpr std::string_view kEndings[] = {
      ".safetensors",
      ".json",
      ".toml",
      "dict.txt",
      "bpe.codes",
      "sentencepiece.model",
      ".tokens",
      ".tokens.offsets"};
  return std::any_of(std::begin(kEndings), std::end(kEndings), [&](std::string_view ending) {
    return name.ends_with(ending);
  });
}

}  // namespace

fs::path RunFolder::checkpoint(int64_t update) const {
  return checkpoints() / checkpoint_name(update);
}

void remove_old_checkpoints(const RunFolder& folder, std::vector<int64_t>& own, int64_t keep) {
  const auto kept = std::min(static_cast<size_t>(keep), own.size());
  const auto end = own.end() - static_cast<std::ptrdiff_t>(kept);
  for (auto old = own.begin(); old != end; ++old) {
    const fs::path file = folder.checkpoint(*old);
    std::error_code error;
    if (!fs::remove(file, error) && error)
      log_warning("cannot remove the old checkpoint '", file.string(), "': ", error.message());
  }
  own.erase(own.begin(), end);
}

std::vector<int64_t> other_checkpoints(const RunFolder& folder, const std::vector<int64_t>& own) {
  std::vector<int64_t> others;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder.checkpoints(), error)) {
    const int64_t update = update_of_checkpoint(entry.path().filename());
    if (update >= 0 && std::ranges::find(own, update) == own.end())
      others.push_back(update);
  }
  std::ranges::sort(others);
  return others;
}

fs::path set_aside(const fs::path& file) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(file, error)))
    return {};
  fs::path other;
  for (int number = 1;; ++number) {
    other = file.parent_path() /
        concat(file.stem().string(), ".other-", number, file.extension().string());
    if (!fs::exists(fs::symlink_status(other, error)))
      break;
  }
  fs::rename(file, other, error);
  SEQCONV_CHECK(
      !error, "'", file.string(), "' is of another run and cannot be renamed: ", error.message());
  return other;
}

void remove_leftovers(const RunFolder& folder, bool own) {
  const auto unwanted = [own](const UnfinishedFile& file) {
    if (!is_ours(file.name))
      return false;
    return file.process == ::getpid() ? own : !process_lives(file.process);
  };
  for (const fs::path& place :
       {folder.root.path(), folder.training(), folder.checkpoints(), folder.data()})
    remove_unfinished_files(place, unwanted);
}

}  // namespace seqconv::internal
