#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "base/files_under_way.h"

namespace seqconv::internal {

/// A file that appears under its name only when commit() has put all of it on
/// the disk; until then, and after an error, the old file stays. A symbolic
/// link stays too, it is the file behind it that is replaced. A device or a
/// pipe (/dev/stdout) is written directly, there is nothing to replace. What
/// ended processes left of the same file is deleted. A signal handler that ends
/// the program may delete what is not finished (base/files_under_way.h). Errors
/// name the file and the system's reason.
class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  /// Appends.
  void write(const void* data, size_t size);
  /// Overwrites bytes that were written before.
  void write_at(int64_t offset, const void* data, size_t size);
  /// Puts everything on the disk; the name does not appear yet.
  void flush();
  /// flush(), then the file takes its name.
  void commit();
  /// The file that has the bytes until commit().
  const std::filesystem::path& temporary() const { return temporary_; }

 private:
  [[noreturn]] void fail_with_reason(int error) const;
  /// Puts the bytes on the disk piece by piece, as a slow disk is known by them
  /// from one that hangs.
  void flush_pieces();

  std::filesystem::path path_;       // for messages
  std::filesystem::path target_;     // the file behind links
  std::filesystem::path temporary_;  // the target itself for a device
  int fd_ = -1;
  int64_t size_ = 0;  // of what was appended
  FileUnderWay under_way_;
};

/// Tells what an AtomicFile that was not committed is called: the name that it
/// was to take, and the process that writes, or wrote, it.
struct UnfinishedFile {
  std::string name;
  int process = 0;
};

/// The parts of such a name, "NAME.tmp-PROCESS"; nothing for any other.
std::optional<UnfinishedFile> unfinished_file(const std::filesystem::path& path);

/// Tells whether a process of this number runs on this machine.
bool process_lives(int process);

/// Deletes the unfinished files in a folder that `unwanted` takes; a warning
/// for one that cannot be deleted.
void remove_unfinished_files(
    const std::filesystem::path& folder,
    const std::function<bool(const UnfinishedFile&)>& unwanted);

}  // namespace seqconv::internal
