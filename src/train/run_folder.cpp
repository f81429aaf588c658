#include "run_folder.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "seqconv/base/atomic_file.h"
#include "seqconv/base/error.h"
#include "seqconv/base/log.h"

namespace seqconv {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kPrefix = "update-";
constexpr std::string_view kSuffix = ".safetensors";

/// The update of a checkpoint's file name, or -1 for any other name.
int64_t update_of(const std::string& name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix) ||
      name.size() <= kPrefix.size() + kSuffix.size())
    return -1;
  const char* begin = name.data() + kPrefix.size();
  const char* end = name.data() + name.size() - kSuffix.size();
  int64_t update = -1;
  const auto parsed = std::from_chars(begin, end, update);
  return parsed.ec == std::errc() && parsed.ptr == end ? update : -1;
}

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
  return std::any_of(
      std::begin(kEndings),
      std::end(kEndings),
      [&](std::string_view ending) { return name.ends_with(ending); });
}

}  // namespace

fs::path RunFolder::checkpoint(int64_t update) const {
  std::string number = std::to_string(update);
  number.insert(0, number.size() < 8 ? 8 - number.size() : 0, '0');
  return checkpoints() / concat(kPrefix, number, kSuffix);
}

void remove_old_checkpoints(
    const RunFolder& folder,
    int64_t update,
    int64_t keep) {
  std::error_code error;
  std::vector<std::pair<int64_t, fs::path>> found;
  for (const auto& entry :
       fs::directory_iterator(folder.checkpoints(), error)) {
    const int64_t own = update_of(entry.path().filename().string());
    if (own >= 0 && own <= update)
      found.emplace_back(own, entry.path());
  }
  std::sort(found.begin(), found.end());
  const auto kept = std::min(static_cast<size_t>(keep), found.size());
  for (size_t i = 0; i + kept < found.size(); ++i)
    if (!fs::remove(found[i].second, error) && error)
      log_warning(
          "cannot remove the old checkpoint '",
          found[i].second.string(),
          "': ",
          error.message());
}

void remove_leftovers(const RunFolder& folder, bool own) {
  const auto unwanted = [own](const UnfinishedFile& file) {
    if (!is_ours(file.name))
      return false;
    return file.process == ::getpid() ? own : !process_lives(file.process);
  };
  for (const fs::path& place :
       {folder.root.path(),
        folder.training(),
        folder.checkpoints(),
        folder.data()})
    remove_unfinished_files(place, unwanted);
}

}  // namespace seqconv
