#pragma once

#include <filesystem>
#include <string>

namespace seqconv::internal {

/// Keeps a folder for one process: a lock on a file in it, which other
/// FolderLocks respect and everything else ignores. The system lets go of it
/// when the process ends, however it ends; the file stays.
class FolderLock {
 public:
  /// Creates `file` where it is missing and locks it. Error naming `folder`,
  /// the file and the process that holds it when another lock does; `work` is
  /// what that one does there. A warning says so and held() is false where the
  /// file system has no locks.
  FolderLock(
      const std::filesystem::path& folder,
      const std::filesystem::path& file,
      const std::string& work = "training");
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock();

  bool held() const { return held_; }

 private:
  void sign();

  int fd_ = -1;
  bool held_ = false;
};

}  // namespace seqconv::internal
