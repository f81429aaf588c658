#pragma once

#include <chrono>

namespace seqconv::internal {

/// A file that this process is writing, for whoever handles signals: a program
/// that is ended in the middle deletes it, and one that waits for it sees
/// whether it still grows.
class FileUnderWay {
 public:
  FileUnderWay() = default;
  FileUnderWay(const FileUnderWay&) = delete;
  FileUnderWay& operator=(const FileUnderWay&) = delete;
  ~FileUnderWay() { end(); }

  /// `temporary` is the name that an ended program should not leave behind; ""
  /// where the file is written in its place.
  void begin(const char* temporary);
  /// Bytes have come, or have reached the disk.
  void grew();
  /// It is whole, or given up.
  void end();

 private:
  bool begun_ = false;
  int slot_ = -1;  // of the names to delete
};

/// For how long no file of those under way has grown; 0 when there is none.
/// Signal handlers may call it.
std::chrono::nanoseconds time_without_growth();

/// Deletes what this process has under way, for a signal handler that ends it.
void remove_files_under_way();

}  // namespace seqconv::internal
