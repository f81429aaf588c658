#include "base/file_stamps.h"

#include <sys/stat.h>

namespace seqconv::internal {
namespace fs = std::filesystem;

bool FileStamps::Stamp::is_same_file(const Stamp& other) const {
  return there && other.there && device == other.device && number == other.number;
}

FileStamps::Stamp FileStamps::stamp_of(const fs::path& file) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0)
    return {};
  return {
      .there = true,
      .device = static_cast<uint64_t>(info.st_dev),
      .number = static_cast<uint64_t>(info.st_ino),
      .size = int64_t{info.st_size},
      .written = int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec};
}

void FileStamps::add(const fs::path& file) {
  files_.emplace_back(file, stamp_of(file));
}

std::optional<fs::path> FileStamps::changed() const {
  for (const auto& [file, stamp] : files_)
    if (stamp_of(file) != stamp)
      return file;
  return std::nullopt;
}

std::optional<fs::path> FileStamps::written() const {
  for (const auto& [file, stamp] : files_)
    if (const Stamp now = stamp_of(file); now.is_same_file(stamp) && now != stamp)
      return file;
  return std::nullopt;
}

}  // namespace seqconv::internal
