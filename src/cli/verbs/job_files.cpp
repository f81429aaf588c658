#include "cli/verbs/job_files.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/log.h"

namespace seqconv::internal::verbs {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kMostParts = 99'999;  // of any job

/// In the order in which they are removed.
enum class JobFile { kRecord, kPartRecord, kPart, kPartLock, kJoinLock };

/// The kind of a name in a job of so many parts: "3.out" is a part.
std::optional<JobFile> job_file(const std::string& name, int64_t parts) {
  if (name == kJobRecord || name.starts_with(concat(kJobRecord, kNewRecord)))
    return JobFile::kRecord;
  if (name == kJoinLock)
    return JobFile::kJoinLock;
  int64_t part = 0;
  const char* const end = name.data() + name.size();
  const auto number = std::from_chars(name.data(), end, part);
  if (number.ec != std::errc() || name.front() == '0' || part < 1 || part > parts)
    return std::nullopt;
  const std::string_view ending(number.ptr, end);
  if (ending == ".out")
    return JobFile::kPart;
  if (ending == ".lock")
    return JobFile::kPartLock;
  const auto unfinished = unfinished_file(name);
  if (ending == ".json" || (unfinished && unfinished->name == concat(part, ".json")))
    return JobFile::kPartRecord;
  return std::nullopt;
}

/// The names in a folder, in alphabetical order.
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    names.push_back(at->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

/// Not behind a link. A name that was listed may be gone (not_found): another process of the job
/// has renamed its new record.
fs::file_type type_of(const fs::path& path) {
  std::error_code none;
  return fs::symlink_status(path, none).type();
}

bool is_file(const fs::path& path) {
  return type_of(path) == fs::file_type::regular;
}

}  // namespace

std::string foreign_entry(const fs::path& folder, bool begun) {
  for (const std::string& name : names_in(folder)) {
    const auto kind = job_file(name, kMostParts);
    const bool of_a_part = kind == JobFile::kPart || kind == JobFile::kPartRecord;
    const std::string lock = concat(name.substr(0, name.find('.')), ".lock");
    const fs::file_type type = type_of(folder / name);
    if (type == fs::file_type::not_found)
      continue;
    if (!kind || type != fs::file_type::regular || (!begun && of_a_part && !is_file(folder / lock)))
      return name;
  }
  return "";
}

void check_job_files(const fs::path& folder) {
  for (const std::string& name : names_in(folder)) {
    const fs::file_type type = type_of(folder / name);
    SEQCONV_CHECK(
        !job_file(name, kMostParts) || type == fs::file_type::regular ||
            type == fs::file_type::not_found,
        "'",
        name,
        "' in the folder '",
        folder.string(),
        "' must be an ordinary file of this job, but is a folder, a link, a pipe or a device: move "
        "it away, or choose another --output");
  }
}

void remove_job(const fs::path& folder, int64_t parts) {
  std::vector<std::pair<JobFile, fs::path>> files;
  for (const std::string& name : names_in(folder))
    if (const auto kind = job_file(name, parts); kind && is_file(folder / name))
      files.emplace_back(*kind, folder / name);
  std::sort(files.begin(), files.end());
  std::error_code error;
  for (const auto& [kind, file] : files)
    fs::remove(file, error);
  if (fs::remove(folder, error) || !error)
    return;
  const std::vector<std::string> others = names_in(folder);
  log_warning(
      "the folder '",
      folder.string(),
      "' stays: ",
      others.empty() ? error.message()
                     : concat("'", others.front(), "' in it is no file of this job"));
}

void remove_empty_job(const fs::path& folder) {
  std::error_code none;
  fs::remove(folder / kJoinLock, none);
  fs::remove(folder, none);
}

}  // namespace seqconv::internal::verbs
